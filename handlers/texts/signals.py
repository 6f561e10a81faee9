"""The names of signals, in what is said of a process that one has ended."""

import signal


def signal_name(number: int) -> str:
    """Return the name of a signal; Python has none for most of the real-time ones."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
