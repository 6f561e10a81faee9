"""The shelf: a folder for each capability that the core does not know (daemon/extension.py)."""
