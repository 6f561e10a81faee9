"""Rows of a batch: as a handler sees them, and as their answers are sent back."""
