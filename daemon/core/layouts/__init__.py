"""Layouts of log lines: the daemon's own formats, and patterns that an operator chooses."""
