"""The served models, and their origin."""
