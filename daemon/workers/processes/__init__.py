"""Worker processes: where they come from, what they print, and how they end."""
