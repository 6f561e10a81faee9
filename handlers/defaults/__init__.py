"""Former names of handlers.builtin, for processes of earlier versions: see moved.py."""
