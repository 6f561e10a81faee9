"""Names for authors of handlers."""
