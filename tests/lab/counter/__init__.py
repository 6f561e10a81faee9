"""The counter: how many files an idea lives in, measured. See __main__.py."""
