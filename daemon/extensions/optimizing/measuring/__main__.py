"""`python -P -m tsctl.daemon.extensions.optimizing.measuring`: a JSON line on stdin, then the body of the request.

The output is JSON lines, each with a `stage`:

    loading      optimize; done, total (sets)
    measuring    optimize; done, total (sets)
    done         rows (choice.py); for `tsctl optimize` batchSize, threads, recommended (a row's `optimize`, or None)
    failed       message, details: there is no result
"""

import asyncio
import math
import os
import sys
import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import uvloop

from tsctl.daemon.api.inference.forms import parse_body
from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.worker_env import model_environment
from tsctl.daemon.core.clock import LoopClock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.extensions.optimizing.choice import TrialRow, choose
from tsctl.daemon.extensions.optimizing.measuring.candidates import (
    OptimizationSet,
    candidates,
    is_large_jpeg,
    least_large_side,
    sets_of_trial,
)
from tsctl.daemon.extensions.optimizing.measuring.harness import HarnessLoadFailed, SampleFailed
from tsctl.daemon.extensions.optimizing.measuring.turns import SetTurns
from tsctl.daemon.models.archives.manifest import read_yaml
from tsctl.daemon.tools.telling import tell
from tsctl.daemon.workers.cores import chosen_threads, threads_for, usable_cores
from tsctl.daemon.workers.engine import WorkerSpec
from tsctl.daemon.workers.local_engine import LocalEngine
from tsctl.handlers.names import NO_OPTIMIZATION
from tsctl.handlers.own_process import BACKGROUND, step_back

MOST_HELD = 1000  # lines of one output that are held back; of more, the last are printed


class TrialOrder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The order of the daemon's own trial, which has the lowest priority, and keeps its findings for later loads.

    The program ends when stdin is closed.

    Attributes:
        sets: those to try beside the plain model, by their names.
        threads: of each worker.
        body_bytes: the length of the body on stdin.
        state_dir: where outcomes and compiled code are kept.
    """

    sets: Sequence[Sequence[str]]
    threads: int
    body_bytes: int
    state_dir: str


class OptimizeOrder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The order.

    Attributes:
        model: the daemon's document `/tsctl/worker/MODEL`; `cpus`, too, in the daemon's own trial.
        settings: the daemon's settings that its workers' environment depends on.
        seconds: how long each set is measured.
        trial: the daemon's own trial, beside its models; None for `tsctl optimize`.
    """

    model: Mapping[str, Any]
    settings: Mapping[str, str] = {}
    content_type: str = ""
    seconds: float = 3.0
    trial: "TrialOrder | None" = None


def read_order(line: bytes) -> OptimizeOrder:
    return msgspec.json.decode(line, type=OptimizeOrder)


class NothingToOptimize(Exception):
    """The handler has no model that can be optimised; the message is the worker's reason."""


async def measure(order: OptimizeOrder, body: bytes, directory: str) -> None:
    """Measure all sets for `tsctl optimize`, and tell the result.

    Args:
        directory: the place of compiled code and of outcomes.

    Raises:
        NothingToOptimize: no optimisation can be applied, for one and the same reason.
    """
    asked = order.model["settings"].get("optimize")
    sets = candidates(order.model["handler"], asked, large_jpeg=is_large(order.model, body))
    chosen = order.model["settings"].get("threads") or chosen_threads(os.environ)
    threads = threads_for(usable_cores(), order.model["workers"], chosen)
    rows = await run_turns(order, body, directory, sets, threads, trial=False)
    refusals = {row.refused for row in rows if not row.now and row.optimize != NO_OPTIMIZATION}
    if len(refusals) == 1 and "" not in refusals:
        raise NothingToOptimize(*refusals)
    best = choose(rows, None, math.inf).optimize or None
    told = [msgspec.to_builtins(row) for row in rows]
    tell("done", batchSize=order.model["settings"]["batchSize"], threads=threads, rows=told, recommended=best)


async def compare(order: OptimizeOrder, trial: TrialOrder, body: bytes) -> None:
    """Compare the sets of the daemon's trial, and tell the result."""
    sets = sets_of_trial(trial.sets, large_jpeg=is_large(order.model, body))
    rows = await run_turns(order, body, trial.state_dir, sets, trial.threads, trial=True)
    tell("done", rows=[msgspec.to_builtins(row) for row in rows])


def is_large(model: Mapping[str, Any], body: bytes) -> bool:
    """Return whether a body is a JPEG that is large for this model, as `OptimizeOrder` describes it."""
    directory = Path(model["directory"])
    config = read_yaml(directory, model["manifest"].get("model", {}).get("configFile"))
    return is_large_jpeg(body, least_large_side(directory, config))


async def run_turns(
    order: OptimizeOrder, body: bytes, directory: str, sets: Sequence[OptimizationSet], threads: int, *, trial: bool
) -> list[TrialRow]:
    """Measure sets in workers on this machine; the arguments are as in `SetTurns`."""
    loop = asyncio.get_running_loop()
    clock = LoopClock(loop)
    config = resolve({**order.settings, "state_dir": directory}, {})
    engine = LocalEngine(loop, clock, model_environment(os.environ, config), metrics=config.model_metrics)
    spec, params = spec_of(order.model), parse_body(order.content_type, body)
    try:
        return await SetTurns(engine, clock, spec, threads, params, order.seconds, tell, trial=trial).measure_sets(sets)
    finally:
        engine.close()


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


def spec_of(model: Mapping[str, Any]) -> WorkerSpec:
    """Return the configuration of throw-away workers, as the daemon's own have; their output goes to stderr.

    Args:
        model: as in the order.
    """
    served, python = model["settings"], model["python"]
    return WorkerSpec(
        model_name=model["modelName"],
        model_version=model["modelVersion"],
        model_dir=Path(model["directory"]),
        handler=model["handler"],
        manifest=model["manifest"],
        batch_size=served["batchSize"],
        startup_timeout=served["startupTimeout"],
        response_timeout=served["responseTimeout"],
        retry=False,
        devices=model["devices"],
        gpu_names=model.get("gpuNames", ()),
        told={"device_type": served.get("deviceType"), "quiet": True},  # the result has the reasons of refusals
        python=None if python is None else Path(python),
        cpus=model.get("cpus", ()),
        log=PrintedOutput().print_lines,
    )


class PrintedOutput:
    """The output of a model's workers, printed to stderr.

    Each worker loads the same model, and most say the same of it. Lines are held back as long as another worker's
    output has begun with the same ones, and printed with the first that differs: no traceback lacks its beginning.
    """

    def __init__(self) -> None:
        self._begun: set[int] = set()  # hashes of the lines printed so far of an output, from the first to each
        self._hashes: dict[tuple[int, str], int] = {}  # of an output that far
        self._held: defaultdict[tuple[int, str], deque[str]] = defaultdict(lambda: deque(maxlen=MOST_HELD))

    def print_lines(self, text: str, pid: int, stream: str) -> None:
        """Print lines of the output `stream` of the worker `pid`, or hold them back."""
        held = self._held[pid, stream]
        for line in text.splitlines():
            held.append(line)
            begun = self._hashes[pid, stream] = hash((self._hashes.get((pid, stream), 0), line))
            if begun not in self._begun:
                self._begun.add(begun)
                print("\n".join(held), file=sys.stderr)  # noqa: T201 - the workers' output
                held.clear()


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
        # Earlier outcomes and code would make a first load look short.
        with tempfile.TemporaryDirectory(prefix="tsctl-optimize-") as directory:
            uvloop.run(measure(order, body, directory))

    return told(work)


if __name__ == "__main__":
    sys.exit(main())
