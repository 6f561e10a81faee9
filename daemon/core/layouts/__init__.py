"""Layouts of log lines that an operator chooses."""
