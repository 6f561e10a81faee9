"""Texts as they are written: the lines of logs, and JSON."""
