"""`python -P -m daemon.tune`: see order.py for what it reads and writes."""

import asyncio
import dataclasses
import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from daemon.api.forms import parse_body
from daemon.clock import LoopClock
from daemon.config import resolve
from daemon.environment import model_environment
from daemon.errors import DaemonError
from daemon.tune.candidates import Setting, placements, settings, worker_counts
from daemon.tune.frontier import Point, frontier, recommend
from daemon.tune.load import NoLoad, Plan, plan_load
from daemon.tune.measuring.rig import LoadFailed, SampleFailed
from daemon.tune.measuring.sweep import Sweep
from daemon.tune.measuring.way import measure_way
from daemon.tune.order import Order, read_order
from daemon.tune.replay import Way, replay
from daemon.tune.times import BatchTimes
from daemon.workers.devices import threads_for, usable_cores
from daemon.workers.engine import WorkerSpec
from daemon.workers.local import LocalEngine

REQUESTS = 3000  # replayed to compare
MORE = 12_000  # replayed for what is shown


def tell(stage: str, **facts: Any) -> None:
    print(json.dumps({"stage": stage} | facts), flush=True)  # noqa: T201 - the reader is a program


def spec_of(order: Order) -> WorkerSpec:
    worker, served = order.worker, order.trace["settings"]
    python = worker["python"]
    return WorkerSpec(
        model_name=order.trace["modelName"],
        model_version=order.trace["modelVersion"],
        model_dir=Path(worker["directory"]),
        handler=worker["handler"],
        manifest=worker["manifest"],
        batch_size=order.most,
        startup_timeout=served["startupTimeout"],
        response_timeout=served["responseTimeout"],
        retry=False,
        devices=worker["devices"],
        python=None if python is None else Path(python),
        log=lambda line: print(line, file=sys.stderr),  # noqa: T201 - what the worker prints
    )


async def measure(order: Order, body: bytes) -> tuple[list[BatchTimes], Way]:
    """Measure the model, then what a request costs beside it."""
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    engine = LocalEngine(loop, clock, model_environment(os.environ, resolve(order.settings, {})))
    spec, cores = spec_of(order), usable_cores()
    counts = order.workers or worker_counts(cores, order.trace["workers"], gpu=bool(spec.devices))
    sweep = Sweep(engine, clock, spec, parse_body(order.content_type, body), order.seconds, tell)
    await sweep.run(placements(cores, counts), order.most)
    way = await measure_way(body, order.content_type, sweep.answer)
    tell("way", latency=way.latency, cost=way.cost)
    return sweep.times, way


def try_all(order: Order, measured: Sequence[BatchTimes], way: Way, plan: Plan) -> dict[str, Any]:
    """Replay the load under every setting; give the document of the result."""
    served = order.trace["settings"]
    delay, size = served["maxBatchDelay"] / 1000, served["batchSize"]
    workers = order.trace["workers"]
    now = Setting(workers, threads_for(usable_cores(), workers), size, delay, served["batching"])
    times = {(each.workers, each.threads): each for each in measured}
    wanted = {now} if (now.workers, now.threads) in times else set()
    for each in measured:
        known = each.busy.sizes
        sizes = {*known, *(size for size in (size, plan.clients) if 1 <= size <= known[-1])}
        wanted |= set(settings(each.workers, each.threads, sorted(sizes), each.busy.fit().a, delay))
    points = _replay(sorted(wanted, key=dataclasses.astuple), times, way, plan, REQUESTS, 0)
    chosen = {point.setting for point in frontier(points)} | {now}
    recommended, _ = recommend(points, order.slo)
    if recommended is not None:
        chosen.add(recommended.setting)
    chosen &= wanted
    exact = _replay(sorted(chosen, key=dataclasses.astuple), times, way, plan, MORE, len(points))
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


def main() -> int:
    order = read_order(sys.stdin.buffer.readline())
    body = sys.stdin.buffer.read()
    try:
        plan = plan_load(order.trace, order.worker, order.clients, order.rate)
        tell("load", text=plan.text)
        measured, way = uvloop.run(measure(order, body))
        tell("done", **try_all(order, measured, way, plan))
    except NoLoad as error:
        tell("failed", message=str(error), details="")
    except SampleFailed as error:
        first, _, rest = str(error).partition("\n")
        tell("failed", message=f"the model cannot answer the request: {first}", details=rest)
    except LoadFailed as error:
        tell("failed", message=f"the model does not load: {error}", details=error.details)
    except DaemonError as error:
        tell("failed", message=str(error), details="")
    except (KeyboardInterrupt, BrokenPipeError):
        return 1
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
