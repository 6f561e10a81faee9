"""One verb, one file; each has a `command`."""
