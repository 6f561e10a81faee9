"""Worker processes, their lifecycle and their placement."""
