"""The load replayed under every candidate, on all cores, and what comes of it."""

import dataclasses
import multiprocessing
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from daemon.tune.candidates import Setting, settings
from daemon.tune.frontier import Point, frontier, recommend
from daemon.tune.load import Plan
from daemon.tune.order import Order
from daemon.tune.replay import Way, replay
from daemon.tune.times import BatchTimes
from daemon.workers.devices import chosen_threads, threads_for, usable_cores

REQUESTS = 2000  # in a short run
MORE = 8000  # in a long one

Tell = Callable[..., None]  # stage, **facts


def try_all(order: Order, measured: Sequence[BatchTimes], way: Way, plan: Plan, tell: Tell) -> dict[str, Any]:
    """Replay the load under every setting; give the document of the result.

    All get a short run. The frontier of that, and the setting there is now, get a long one, which is what is shown.
    """
    served = order.trace["settings"]
    delay, size = served["maxBatchDelay"] / 1000, served["batchSize"]
    workers = order.trace["workers"]
    now = Setting(
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
    best = frontier(exact)
    recommended, rule = recommend(exact, order.slo)
    if recommended is not None and recommended not in best:
        best = sorted([*best, recommended], key=lambda point: -point.capacity)
    shown = {point.setting: point for point in exact}
    return {
        "load": {"text": plan.text, "clients": plan.clients or None, "requestsPerSecond": plan.offered},
        "way": dataclasses.asdict(way),
        "now": None if now not in shown else _document(shown[now]),
        "frontier": [_document(point) for point in best],
        "recommended": None if recommended is None else best.index(recommended),
        "rule": rule,
        "tried": len(points),
    }


def _replay(
    wanted: Sequence[Setting],
    times: dict[tuple[int, int], BatchTimes],
    way: Way,
    plan: Plan,
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
    setting: Setting, times: dict[tuple[int, int], BatchTimes], way: Way, plan: Plan, requests: int
) -> Point:
    return replay(setting, times[setting.workers, setting.threads], plan, way, requests)


def _document(point: Point) -> dict[str, Any]:
    """A point; milliseconds for the delay, which is set so, else seconds."""
    setting = point.setting
    return {
        "workers": setting.workers, "threads": setting.threads, "batchSize": setting.batch_size,
        "maxBatchDelay": round(setting.max_delay * 1000, 3), "batching": setting.policy,
        "capacity": point.capacity, "throughput": point.throughput, "p50": point.p50, "p99": point.p99,
        "meanBatch": point.mean_batch, "keepsUp": point.keeps_up,
    }  # fmt: skip
