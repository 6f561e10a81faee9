"""A percentile of sorted values, by the nearest rank."""

from collections.abc import Sequence


def nearest_rank(ordered: Sequence[float], percent: float) -> float:
    """Give the value that so many percent of all do not exceed; there must be one."""
    return ordered[max(0, -(-int(len(ordered) * percent) // 100) - 1)]
