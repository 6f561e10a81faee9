"""`python -P -m daemon.tools.tune`: order.py describes its input and output."""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import uvloop

from daemon.api.inference.forms import parse_body
from daemon.config.config import resolve
from daemon.config.worker_env import model_environment
from daemon.core.clock import LoopClock
from daemon.tools.telling import tell
from daemon.tools.tune.candidates import placements, worker_counts
from daemon.tools.tune.checking import check
from daemon.tools.tune.frontier import Point, recommend
from daemon.tools.tune.lengths import compare
from daemon.tools.tune.load import LoadPlan, NoLoad, plan_load
from daemon.tools.tune.measuring.contention import measure_contention
from daemon.tools.tune.measuring.overhead import measure_overhead
from daemon.tools.tune.measuring.rehearsal import Rehearsal
from daemon.tools.tune.measuring.spec import spec_of
from daemon.tools.tune.measuring.sweep import Sweep
from daemon.tools.tune.measuring.told import told
from daemon.tools.tune.order import TuneOrder, read_order
from daemon.tools.tune.replay import Overhead
from daemon.tools.tune.simulating import Simulated, document, simulate
from daemon.tools.tune.times import PlacementTimes
from daemon.workers.cores import chosen_threads, usable_cores
from daemon.workers.local_engine import LocalEngine


async def measure(order: TuneOrder, body: bytes) -> tuple[list[PlacementTimes], Overhead]:
    """Measure the model's batch times, then the overhead of a request."""
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    config = resolve(order.settings, {})
    engine = LocalEngine(loop, clock, model_environment(os.environ, config), metrics=config.model_metrics)
    spec, cores = spec_of(order.trace, order.worker, order.most), usable_cores()
    counts = order.workers or worker_counts(cores, order.trace["workers"], gpu=bool(spec.devices))
    beside = partial(measure_contention, seconds=order.seconds, body=body, content_type=order.content_type)
    sweep = Sweep(engine, clock, spec, parse_body(order.content_type, body), order.seconds, tell, beside)
    try:
        await sweep.run(placements(cores, counts, chosen_threads(os.environ)), order.most)
    finally:
        engine.close()
    way = await measure_overhead(body, order.content_type, sweep.answer)
    tell("way", latency=way.latency, cost=way.cost)
    return sweep.times, way


async def rehearse(order: TuneOrder, body: bytes, plan: LoadPlan, simulated: Simulated) -> Sequence[Point]:
    """Try the most important settings on the real model; return all points, corrected by the trials."""
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    config = resolve(order.settings, {})
    engine = LocalEngine(loop, clock, model_environment(os.environ, config), metrics=config.model_metrics)
    rehearsal = Rehearsal(engine, clock, order, body, plan)
    try:
        return await check(simulated.points, simulated.now, order.slo, rehearsal.attempt, tell)
    finally:
        await rehearsal.close()
        engine.close()


def lengths_of(
    order: TuneOrder,
    measured: Sequence[PlacementTimes],
    way: Overhead,
    plan: LoadPlan,
    points: Sequence[Point],
    body: bytes,
) -> dict[str, Any] | None:
    """Return what the recommended setting gains by forming batches by length; None for little, or if it does."""
    best, _ = recommend(points, order.slo)
    if best is None or order.trace["settings"].get("groupByLength"):
        return None
    setting = best.setting
    times = next(each for each in measured if (each.workers, each.threads) == (setting.workers, setting.threads))
    size = sum(len(param.value) for param in parse_body(order.content_type, body))
    return compare(best, times, plan, way, order.trace.get("lengths", ()), size)


def main() -> int:
    order = read_order(sys.stdin.buffer.readline())
    body = sys.stdin.buffer.read()
    return told(partial(_tune, order, body), {NoLoad: ""})


def _tune(order: TuneOrder, body: bytes) -> None:
    plan = plan_load(order.trace, order.worker, order.clients, order.rate)
    tell("load", text=plan.text)
    measured, way = uvloop.run(measure(order, body))
    simulated = simulate(order, measured, way, plan, tell)
    points = uvloop.run(rehearse(order, body, plan, simulated)) if plan.clients else simulated.points
    load = {"text": plan.text, "clients": plan.clients or None, "requestsPerSecond": plan.offered}
    found = document(points, order.slo, simulated.now)
    lengths = lengths_of(order, measured, way, plan, points, body)
    tell("done", load=load, way=asdict(way), tried=simulated.tried, lengths=lengths, **found)


if __name__ == "__main__":
    sys.exit(main())
