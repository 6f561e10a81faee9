"""Preprocessing of texts for the text handlers: pure functions, without torch."""
