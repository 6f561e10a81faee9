"""A handler file without an entry point."""

VALUE = 1
