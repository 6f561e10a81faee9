"""The state machines of a connection and of its receiver: drawings and tables."""
