"""The interface for work in a process of its own; handlers/process/forking.py implements it with a fork."""

from collections.abc import Callable

# Starts a function in a process of its own, and returns what waits for its result. That must be called once, and raises
# ChildProcessError if the process has died.
Apart = Callable[[Callable[[], bytes]], Callable[[], bytes]]
