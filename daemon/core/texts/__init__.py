"""Texts as they are written: JSON."""
