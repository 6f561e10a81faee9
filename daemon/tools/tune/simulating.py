"""Replay the load under every candidate, on all cores, and report the results."""

import dataclasses
import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from daemon.tools.tune.candidates import Candidate, settings
from daemon.tools.tune.frontier import Point, frontier, recommend
from daemon.tools.tune.load import LoadPlan
from daemon.tools.tune.order import TuneOrder
from daemon.tools.tune.replay import Overhead, replay
from daemon.tools.tune.times import PlacementTimes
from daemon.workers.cores import chosen_threads, threads_for, usable_cores

REQUESTS = 2000  # in a short run
MORE = 8000  # in a long one

Tell = Callable[..., None]  # stage, **facts


@dataclass(frozen=True, slots=True)
class Simulated:
    """The simulator's results.

    Attributes:
        points: of the frontier, and of the setting `now`.
        tried: the number of settings.
    """

    points: Sequence[Point]
    now: Candidate
    tried: int


def simulate(
    order: TuneOrder, measured: Sequence[PlacementTimes], way: Overhead, plan: LoadPlan, tell: Tell
) -> Simulated:
    """Replay the load under every setting.

    All settings get a short run. The frontier of these and the current setting get a long one, whose points are
    returned.
    """
    served = order.trace["settings"]
    delay, size = served["maxBatchDelay"] / 1000, served["batchSize"]
    workers = order.trace["workers"]
    now = Candidate(
        workers, threads_for(usable_cores(), workers, chosen_threads(os.environ)), size, delay, served["batching"]
    )
    times = {(each.workers, each.threads): each for each in measured}
    wanted = {now} if (now.workers, now.threads) in times else set()
    for each in measured:
        known = each.busy.sizes
        sizes = {*known, *(size for size in (size, plan.clients) if 1 <= size <= known[-1])}
        able = [size for size in sorted(sizes) if plan.offered is None or each.capacity(size) >= plan.offered]
        wanted |= set(settings(each.workers, each.threads, able, each.busy.fit().a, delay))
    points = _replay(sorted(wanted, key=dataclasses.astuple), times, way, plan, REQUESTS, 0, tell)
    chosen = {point.setting for point in frontier(points)} | {now}
    recommended, _ = recommend(points, order.slo)
    if recommended is not None:
        chosen.add(recommended.setting)
    chosen &= wanted
    exact = _replay(sorted(chosen, key=dataclasses.astuple), times, way, plan, MORE, len(points), tell)
    return Simulated(exact, now, len(points))


def document(points: Sequence[Point], slo: float | None, now: Candidate) -> dict[str, Any]:
    """Return the frontier, the recommended setting and the current one as a document."""
    best = frontier(points)
    recommended, rule = recommend(points, slo)
    if recommended is not None and recommended not in best:
        best = sorted([*best, recommended], key=lambda point: -point.capacity)
    return {
        "now": next((_document(point) for point in points if point.setting == now), None),
        "frontier": [_document(point) for point in best],
        "recommended": None if recommended is None else best.index(recommended),
        "rule": rule,
    }


def _replay(
    wanted: Sequence[Candidate],
    times: dict[tuple[int, int], PlacementTimes],
    way: Overhead,
    plan: LoadPlan,
    requests: int,
    before: int,
    tell: Tell,
) -> list[Point]:
    points = []

    one = partial(_replay_one, times=times, way=way, plan=plan, requests=requests)
    with multiprocessing.Pool(usable_cores()) as pool:
        for point in pool.imap(one, wanted):
            points.append(point)
            tell("replaying", done=before + len(points), total=before + len(wanted))
    return points


def _replay_one(
    setting: Candidate, times: dict[tuple[int, int], PlacementTimes], way: Overhead, plan: LoadPlan, requests: int
) -> Point:
    return replay(setting, times[setting.workers, setting.threads], plan, way, requests)


def _document(point: Point) -> dict[str, Any]:
    """Return a point as a document; the delay in milliseconds, as in the setting, other times in seconds."""
    setting = point.setting
    return {
        "workers": setting.workers, "threads": setting.threads, "batchSize": setting.batch_size,
        "maxBatchDelay": round(setting.max_delay * 1000, 3), "batching": setting.policy,
        "capacity": point.capacity, "throughput": point.throughput, "p50": point.p50, "p99": point.p99,
        "meanBatch": point.mean_batch, "keepsUp": point.keeps_up, "measured": point.measured,
    }  # fmt: skip
