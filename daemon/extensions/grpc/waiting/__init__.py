"""Calls that wait: for others that arrive with them, for their model, for their turn in a stream, for their client."""
