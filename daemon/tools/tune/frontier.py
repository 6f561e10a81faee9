"""The Pareto frontier of settings, and the one to recommend.

A setting is on the frontier if no other is at least as good in capacity, p50 and p99, and better in one. Differences
under 2 % are noise and ignored; of otherwise equal settings, the simplest stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from daemon.tools.tune.candidates import POLICIES, Candidate

SAME = 0.02
NEAR = 0.05  # of the least p99, accepted in exchange for capacity


@dataclass(frozen=True, slots=True)
class Point:
    """The predicted performance of a setting; times in seconds, as seen by a client.

    Attributes:
        capacity: responses a second with full batches and all workers busy.
        throughput: responses a second under the load.
        mean_batch: mean batch size under the load.
        keeps_up: the load's requests are answered as fast as they arrive.
        measured: throughput, p50 and p99 were measured in a trial.
    """

    setting: Candidate
    capacity: float
    throughput: float
    p50: float
    p99: float
    mean_batch: float
    keeps_up: bool = True
    measured: bool = False


def frontier(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other beats, the highest capacity first."""
    ordered = sorted(points, key=_simplicity)
    kept = [
        point
        for index, point in enumerate(ordered)
        if not any(_beats(other, point) for other in ordered)
        and not any(_same(other, point) for other in ordered[:index])
    ]
    return sorted(kept, key=lambda point: (-point.capacity, point.p99))


def recommend(points: Sequence[Point], slo: float | None = None) -> tuple[Point | None, str]:
    """Choose one point, and return the rule that chose it.

    Args:
        slo: limit on the p99 in seconds; None for no limit.

    Returns:
        The point and the rule; the point is None if none keeps up with the load within `slo`.
    """
    able = [point for point in points if point.keeps_up]
    if slo is not None:
        rule = f"the highest capacity of the settings whose p99 is at most {slo * 1000:g} ms"
        able = [point for point in able if point.p99 <= slo]
    else:
        rule = f"the highest capacity of the settings whose p99 is within {NEAR:.0%} of the least"
        least = min((point.p99 for point in able), default=0.0)
        able = [point for point in able if point.p99 <= least * (1 + NEAR)]
    if not able:
        return None, rule
    most = max(point.capacity for point in able)
    best = [point for point in able if point.capacity >= most * (1 - SAME)]
    least = min(point.p99 for point in best)
    return min((point for point in best if point.p99 <= least * (1 + SAME)), key=_simplicity), rule


def _beats(one: Point, other: Point) -> bool:
    """Return whether `one` is no worse in any measure, and better in one, by more than noise."""
    pairs = _goodness(one, other)
    return all(ratio >= 1 - SAME for ratio in pairs) and any(ratio > 1 + SAME for ratio in pairs)


def _same(one: Point, other: Point) -> bool:
    return all(1 - SAME <= ratio <= 1 + SAME for ratio in _goodness(one, other))


def _goodness(one: Point, other: Point) -> tuple[float, float, float]:
    """Return the ratios of capacity, p50 and p99; over 1.0 where `one` is better."""
    return one.capacity / other.capacity, other.p50 / one.p50, other.p99 / one.p99


def _simplicity(point: Point) -> tuple[int, int, int, float]:
    setting = point.setting
    return POLICIES.index(setting.policy), setting.workers, setting.batch_size, setting.max_delay
