"""`python -P -m tsctl.daemon.extensions.optimizing.measuring`: order.py describes its input and output."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from tsctl.daemon.api.inference.forms import parse_body
from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.clock import Clock, LoopClock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.extensions.optimizing.measuring.candidates import candidates, sets_of_trial
from tsctl.daemon.extensions.optimizing.measuring.harness import HarnessLoadFailed, SampleFailed
from tsctl.daemon.extensions.optimizing.measuring.jpeg import is_large_jpeg
from tsctl.daemon.extensions.optimizing.measuring.order import OptimizeOrder, TrialOrder, read_order
from tsctl.daemon.extensions.optimizing.measuring.rows import Measuring, NothingToOptimize
from tsctl.daemon.extensions.optimizing.measuring.turns import SetTurns
from tsctl.daemon.extensions.optimizing.measuring.verdict import changed_by, recommended
from tsctl.daemon.tools.telling import tell
from tsctl.daemon.workers.cores import chosen_threads, threads_for, usable_cores
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.daemon.workers.local_engine import LocalEngine
from tsctl.handlers.process.priority import VARIABLE as BACKGROUND
from tsctl.handlers.process.priority import step_back


async def measure(order: OptimizeOrder, body: bytes, directory: str) -> None:
    """Measure all sets for `tsctl optimize`, and tell the result.

    Args:
        directory: the place of compiled code and of trials.
    """
    clock, engine = _engine_of(order, directory)
    size = order.model["settings"]["batchSize"]
    threads = threads_for(usable_cores(), order.model["workers"], chosen_threads(os.environ))
    params = parse_body(order.content_type, body)
    sets = candidates(order.model["handler"], order.model["settings"].get("optimize"), large_jpeg=is_large_jpeg(body))
    spec = spec_of(order.model, size)
    try:
        rows, again = await Measuring(engine, clock, spec, threads, params, order.seconds, tell).run(sets)
    finally:
        engine.close()
    changed = changed_by(rows[0].seconds or again, again)
    tell("done", batchSize=size, threads=threads, rows=[msgspec.to_builtins(row) for row in rows], again=again,
         changed=changed, recommended=recommended(rows))  # fmt: skip


async def compare(order: OptimizeOrder, trial: TrialOrder, body: bytes) -> None:
    """Compare the sets of the daemon's trial, and tell the result."""
    clock, engine = _engine_of(order, trial.state_dir)
    spec = spec_of(order.model, order.model["settings"]["batchSize"])
    params = parse_body(order.content_type, body)
    sets = sets_of_trial(trial.sets, large_jpeg=is_large_jpeg(body))
    try:
        rows = await SetTurns(engine, clock, spec, trial.threads, params, order.seconds, tell).run(sets)
    finally:
        engine.close()
    tell("done", rows=[msgspec.to_builtins(row) for row in rows])


async def compare_until_closed(order: OptimizeOrder, trial: TrialOrder, body: bytes) -> None:
    """Compare the sets until stdin is closed.

    Raises:
        asyncio.CancelledError: stdin was closed; the workers have ended.
    """
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(compare(order, trial, body))

    def end() -> None:
        loop.remove_reader(sys.stdin.fileno())
        task.cancel()

    loop.add_reader(sys.stdin.fileno(), end)
    await task


def _engine_of(order: OptimizeOrder, directory: str) -> tuple[Clock, LocalEngine]:
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    config = resolve({**order.settings, "state_dir": directory}, {})
    return clock, LocalEngine(loop, clock, model_environment(os.environ, config), metrics=config.model_metrics)


def spec_of(model: Mapping[str, Any], batch_size: int) -> WorkerSpec:
    """Return the configuration of throw-away workers, as the daemon's own have; their output goes to stderr.

    Args:
        model: as in the order.
        batch_size: the most rows in a batch.
    """
    served, python = model["settings"], model["python"]
    return WorkerSpec(
        model_name=model["modelName"],
        model_version=model["modelVersion"],
        model_dir=Path(model["directory"]),
        handler=model["handler"],
        manifest=model["manifest"],
        batch_size=batch_size,
        startup_timeout=served["startupTimeout"],
        response_timeout=served["responseTimeout"],
        retry=False,
        devices=model["devices"],
        python=None if python is None else Path(python),
        cpus=model.get("cpus", ()),
        log=lambda text, pid, stream: print(text, file=sys.stderr),  # noqa: T201 - the worker's output
    )


def told(work: Callable[[], None]) -> int:
    """Run the program's work, tell its failure, and return the exit code."""
    try:
        work()
    except NothingToOptimize as error:
        tell("failed", message=f"there is nothing to optimise: {error}", details="")
    except SampleFailed as error:
        first, _, rest = str(error).partition("\n")
        tell("failed", message=f"the model cannot answer the request: {first}", details=rest)
    except HarnessLoadFailed as error:
        tell("failed", message=f"the model does not load: {error}", details=error.details)
    except DaemonError as error:
        tell("failed", message=str(error), details="")
    except (KeyboardInterrupt, BrokenPipeError, asyncio.CancelledError):
        return 1
    else:
        return 0
    return 1


def main() -> int:
    order = read_order(sys.stdin.buffer.readline())
    trial = order.trial
    body = sys.stdin.buffer.read(-1 if trial is None else trial.body_bytes)

    def work() -> None:
        if trial is not None:
            step_back()  # requests first
            os.environ[BACKGROUND] = "true"  # for the workers, each of which leads a session of its own
            uvloop.run(compare_until_closed(order, trial, body))
            return
        # An earlier trial's outcomes and code would make a first load look short.
        with tempfile.TemporaryDirectory(prefix="tsctl-optimize-") as directory:
            uvloop.run(measure(order, body, directory))

    return told(work)


if __name__ == "__main__":
    sys.exit(main())
