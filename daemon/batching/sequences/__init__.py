"""Sequences: requests with a common id, which run in order and on one worker, because that keeps their state."""
