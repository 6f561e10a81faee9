"""Trials: serve the most important settings for some seconds, with the load's clients (measuring/rehearsal.py).

The simulator selects the settings. A trial also shows effects outside the simulation: how the daemon, the clients and
several workers contend for these cores. The differences also correct the other settings with as many workers.

A machine's speed varies: a guest of a busy host loses and regains a third for seconds at a time. Each setting is
therefore tried twice, in forward and reverse order, and the mean counts; the best of several single trials would mostly
be the luckiest.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Protocol

from daemon.tools.tune.candidates import Candidate
from daemon.tools.tune.frontier import Point, frontier, recommend

FIRST = 4  # settings to try, if the frontier has as many
MOST = 6  # including settings that earlier trials made the recommended one


class TrialResult(Protocol):
    """The result of a trial; latencies in seconds, throughput in responses a second."""

    @property
    def throughput(self) -> float: ...
    @property
    def p50(self) -> float: ...
    @property
    def p99(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of several trials; latencies in seconds, throughput in responses a second."""

    throughput: float
    p50: float
    p99: float


Attempt = Callable[[Candidate], Awaitable[TrialResult | None]]
Tell = Callable[..., None]  # stage, **facts


async def check(
    points: Sequence[Point], now: Candidate, slo: float | None, attempt: Attempt, tell: Tell
) -> list[Point]:
    """Try some of the points, each twice, until the recommended one has been tried.

    Args:
        points: as simulated.
        now: the current setting.
        slo: limit on the p99 in seconds, or None.
        attempt: returns None if the setting failed.

    Returns:
        All points, corrected by the trials.
    """
    waiting = to_try(points, now, slo)
    seen: dict[Candidate, TrialResult | None] = {}
    done = total = 0
    while waiting:
        turns = [*waiting, *reversed(waiting)]
        total += len(turns)
        tries: dict[Candidate, list[TrialResult | None]] = {setting: [] for setting in waiting}
        for setting in turns:
            tell("trying", workers=setting.workers, threads=setting.threads, batchSize=setting.batch_size,
                 done=done, total=total)  # fmt: skip
            tries[setting].append(await attempt(setting))
            done += 1
        seen |= {setting: _mean(each) for setting, each in tries.items()}
        best, _ = recommend(corrected(points, seen), slo)
        waiting = [best.setting] if best is not None and best.setting not in seen and len(seen) < MOST else []
    return corrected(points, seen)


def to_try(points: Sequence[Point], now: Candidate, slo: float | None) -> list[Candidate]:
    """Return the settings to try, by workers: the recommended, the current, and those of least p99 on the frontier."""
    best, _ = recommend(points, slo)
    first = [point.setting for point in points if point is best or point.setting == now]
    others = sorted(frontier(points), key=lambda point: point.p99)
    chosen = list(dict.fromkeys([*first, *(point.setting for point in others)]))[:FIRST]
    return sorted(chosen, key=lambda setting: (setting.workers, setting.threads))


def corrected(points: Sequence[Point], seen: Mapping[Candidate, TrialResult | None]) -> list[Point]:
    """Return measured points; correct the simulated ones by the median ratio of those with as many workers.

    A setting that failed while others succeeded is marked as not keeping up.
    """
    shown = [_shown(point, there) for point in points if (there := seen.get(point.setting)) is not None]
    by_setting = {point.setting: point for point in shown}
    simulated = {point.setting: point for point in points}
    found = []
    for point in points:
        if point.setting in by_setting:
            found.append(by_setting[point.setting])
            continue
        if shown and point.setting in seen:
            point = replace(point, keeps_up=False)
        alike = [each for each in shown if each.setting.workers == point.setting.workers]
        pairs = [(each, simulated[each.setting]) for each in alike]
        if pairs:
            point = replace(
                point,
                throughput=point.throughput * median(now.throughput / before.throughput for now, before in pairs),
                p50=point.p50 * median(now.p50 / before.p50 for now, before in pairs),
                p99=point.p99 * median(now.p99 / before.p99 for now, before in pairs),
            )
        found.append(point)
    return found


def _mean(tries: Sequence[TrialResult | None]) -> TrialResult | None:
    """Return the mean, or None if a trial failed."""
    seen = [each for each in tries if each is not None]
    if len(seen) < len(tries):
        return None
    return Mean(
        fmean(each.throughput for each in seen), fmean(each.p50 for each in seen), fmean(each.p99 for each in seen)
    )


def _shown(point: Point, seen: TrialResult) -> Point:
    capacity = max(point.capacity, seen.throughput)
    return replace(point, capacity=capacity, throughput=seen.throughput, p50=seen.p50, p99=seen.p99, measured=True)
