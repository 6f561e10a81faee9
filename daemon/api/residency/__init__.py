"""Versions in memory and out of it: the commands, the documents and the metrics."""
