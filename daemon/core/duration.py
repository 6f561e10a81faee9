"""Durations in messages."""


def duration(seconds: float) -> str:
    """Format seconds in milliseconds below one second: `0.4 ms`, `50 ms`, `2.5 s`."""
    return f"{seconds * 1000:.3g} ms" if seconds < 1.0 else f"{seconds:.4g} s"
