"""The verdict: which set to recommend, and whether the machine changed while the sets were measured."""

from collections.abc import Sequence

from tsctl.daemon.extensions.optimizing.measuring.rows import SetResult

LEAST_GAIN = 1.02  # over the set of now: less is within the error


def recommended(rows: Sequence[SetResult]) -> str | None:
    """Return the fastest set whose optimisations are all applied, so that each drift is within its tolerance.

    Returns:
        None if no set is faster than that of now by a margin.
    """
    able = [row for row in rows if row.per_second is not None and not row.missing]
    best = max(able, key=lambda row: row.per_second or 0.0, default=None)
    if best is None or best.now or best.per_second is None:
        return None
    now = next((row.per_second for row in rows if row.now), None)
    return best.optimize if now is None or best.per_second >= LEAST_GAIN * now else None


def changed_by(before: float, after: float) -> float:
    """Return how much two times of the same work differ, relative to the shorter."""
    return max(before, after) / min(before, after) - 1
