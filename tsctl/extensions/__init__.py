"""The shelf of the command line: a folder for the half of each capability that users see (tsctl/extension.py)."""
