"""What is served, and where it came from."""
