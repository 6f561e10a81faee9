"""`python -P -m daemon.tools.optimize`: order.py describes its input and output."""

import asyncio
import os
import sys
import tempfile

import msgspec
import uvloop

from daemon.api.inference.forms import parse_body
from daemon.config.config import resolve
from daemon.config.worker_env import model_environment
from daemon.core.clock import LoopClock
from daemon.tools.optimize.candidates import candidates
from daemon.tools.optimize.jpeg import is_large_jpeg
from daemon.tools.optimize.measuring import Measuring, NothingToOptimize
from daemon.tools.optimize.order import OptimizeOrder, read_order
from daemon.tools.optimize.verdict import changed_by, recommended
from daemon.tools.telling import tell
from daemon.tools.tune.measuring.spec import spec_of
from daemon.tools.tune.measuring.told import told
from daemon.workers.cores import chosen_threads, threads_for, usable_cores
from daemon.workers.local_engine import LocalEngine


async def measure(order: OptimizeOrder, body: bytes, directory: str) -> None:
    """Measure all sets, and tell the result.

    Args:
        directory: the place of compiled code and of trials: an earlier one's would make a first load look short.
    """
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    config = resolve({**order.settings, "state_dir": directory}, {})
    engine = LocalEngine(loop, clock, model_environment(os.environ, config), metrics=config.model_metrics)
    size = order.trace["settings"]["batchSize"]
    threads = threads_for(usable_cores(), order.trace["workers"], chosen_threads(os.environ))
    params = parse_body(order.content_type, body)
    sets = candidates(order.worker["handler"], order.worker["optimize"], large_jpeg=is_large_jpeg(body))
    spec = spec_of(order.trace, order.worker, size)
    try:
        rows, again = await Measuring(engine, clock, spec, threads, params, order.seconds, tell).run(sets)
    finally:
        engine.close()
    changed = changed_by(rows[0].seconds or again, again)
    tell("done", batchSize=size, threads=threads, rows=[msgspec.to_builtins(row) for row in rows], again=again,
         changed=changed, recommended=recommended(rows))  # fmt: skip


def main() -> int:
    order = read_order(sys.stdin.buffer.readline())
    body = sys.stdin.buffer.read()

    def work() -> None:
        with tempfile.TemporaryDirectory(prefix="tsctl-optimize-") as directory:
            uvloop.run(measure(order, body, directory))

    return told(work, {NothingToOptimize: "there is nothing to optimise: "})


if __name__ == "__main__":
    sys.exit(main())
