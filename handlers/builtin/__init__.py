"""The built-in handlers, and the base classes of users' own."""
