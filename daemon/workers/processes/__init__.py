"""Worker processes: how they are made, their output, and their end."""
