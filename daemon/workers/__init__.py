"""Who does the work: worker processes, their lives and their places."""
