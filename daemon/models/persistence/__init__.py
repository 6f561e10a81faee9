"""State across restarts: the snapshot, and a start from it."""
