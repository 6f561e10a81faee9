"""The inference address: predictions, explanations, health."""
