"""A percentile of sorted values, by the nearest rank."""

from collections.abc import Sequence


def nearest_rank(ordered: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least `percent` % of all values do not exceed; `ordered` must not be empty."""
    return ordered[max(0, -(-int(len(ordered) * percent) // 100) - 1)]
