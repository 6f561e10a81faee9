"""The measurement of the daemon's trial: each set in turns with the set of now, which bears other work on the machine.

    the set of now    loaded first, and kept to the end
    each other set    loaded by its names, which compares, times and compiles; then as the daemon would load it,
                      with the findings of the first load; then batches of both in turns

Times of different sets are made comparable by those of the set of now: a row's `seconds` are its shortest ones, divided
by the gain. A load that had to wait for a core counts as the processor time that it took.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.job import Param
from tsctl.daemon.core.machine.processes import process_facts
from tsctl.daemon.extensions.optimizing.measuring.candidates import OptimizationSet
from tsctl.daemon.extensions.optimizing.measuring.harness import Harness, HarnessLoadFailed, SampleFailed
from tsctl.daemon.extensions.optimizing.measuring.rows import SetResult, Tell, reason_of, row_of
from tsctl.daemon.workers.engine import Engine, Worker, WorkerSpec, local_pid
from tsctl.handlers.names import AUTO, NO_OPTIMIZATION
from tsctl.handlers.optimize.trials.speed import Result, Speed, is_enough, judge

# An unsure result goes on for so many times `seconds`, a minute in a trial of the daemon: what was compiled for it has
# taken longer, and the whole trial would be made again.
PATIENCE = 30


class Compared(NamedTuple):
    """A set that was compared: its worker's report, and its speed beside the set of now."""

    row: SetResult
    speed: Speed


def processor_time(worker: Worker) -> float:
    """Return the seconds of processor time that a worker's process has taken; zero if it is not of this machine."""
    return process_facts(local_pid(worker)).cpu


class SetTurns:
    """Measures sets of optimisations in turns with that of now.

    Args:
        spec: of the workers, with the batch size to measure.
        threads: of each worker.
        params: of the request repeated in all batches.
        seconds: how long two sets are compared, if the result is clear.
        processor_time: as the function of that name.
    """

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        spec: WorkerSpec,
        threads: int,
        params: Sequence[Param],
        seconds: float,
        tell: Tell,
        processor_time: Callable[[Worker], float] = processor_time,
    ) -> None:
        self._engine, self._clock, self._tell, self._processor_time = engine, clock, tell, processor_time
        self._spec, self._threads, self._params, self._seconds = spec, threads, params, seconds

    async def run(self, sets: Sequence[OptimizationSet]) -> list[SetResult]:
        """Measure all sets, of which one is that of now; return a row for each, in their order.

        Raises:
            HarnessLoadFailed: the set of now does not load.
            SampleFailed: the set of now cannot answer the request.
        """
        (now,) = [each for each in sets if each.now]
        ours = self._harness(now.names)
        self._tell("loading", optimize=now.text, done=0, total=len(sets))
        try:
            await ours.start()
            load = self._load_of(ours)
            reference = row_of(now, ours.worker, *await self._one(ours))
            reference.load = load
            found: dict[str, Compared | SetResult] = {}
            for done, candidate in enumerate([each for each in sets if not each.now], 1):
                found[candidate.text] = await self._compared(candidate, ours, done, len(sets))
        finally:
            await ours.close()
        shortest = min([each.speed.without for each in found.values() if isinstance(each, Compared)], default=None)
        return [
            _placed(found.get(each.text, reference), shortest or reference.seconds or 0.0, self._spec.batch_size)
            for each in sets
        ]

    async def _compared(self, candidate: OptimizationSet, ours: Harness, done: int, total: int) -> Compared | SetResult:
        names = candidate.names
        self._tell("loading", optimize=candidate.text, done=done, total=total)
        theirs: Harness | None = None
        try:
            if NO_OPTIMIZATION not in names:
                await self._prepare(names)
                names = (AUTO, *names)
            theirs = self._harness(names)
            await theirs.start()
            load = self._load_of(theirs)
            self._tell("measuring", optimize=candidate.text, done=done, total=total)
            speed = await self._race(ours, theirs)
            row = row_of(candidate, theirs.worker, speed.having, self._spec.batch_size)
            row.load = load
            return Compared(row, speed)
        except HarnessLoadFailed as error:
            return SetResult(optimize=candidate.text, now=False, refused=reason_of(str(error)))
        except SampleFailed as error:
            reason = f"cannot answer the request: {str(error).splitlines()[0]}"
            return SetResult(optimize=candidate.text, now=False, refused=reason)
        finally:
            if theirs is not None:
                await theirs.close()

    async def _prepare(self, names: Sequence[str]) -> None:
        """Load a set by its names once, for the outcomes and the code that later loads find."""
        harness = self._harness(names)
        try:
            await harness.start()
        finally:
            await harness.close()

    async def _race(self, ours: Harness, theirs: Harness) -> Speed:
        without: list[float] = []
        having: list[float] = []
        began = time.monotonic()
        patience = PATIENCE * self._seconds
        while not is_enough(without, having, time.monotonic() - began, self._seconds, patience):
            sides = [(ours, without), (theirs, having)]
            for harness, into in sides if len(without) % 2 == 0 else reversed(sides):
                into.append((await self._one(harness))[0])
        return judge(without, having)

    async def _one(self, harness: Harness) -> tuple[float, int]:
        """Return the seconds of a batch, and its size."""
        size = self._spec.batch_size
        return min(await harness.measure(size, 0.0, least=1)), size

    def _load_of(self, harness: Harness) -> float:
        """Return the seconds in which a worker that has just loaded would have loaded with a core to itself."""
        worker = harness.worker
        return min(worker.load_time, self._processor_time(worker) or worker.load_time)

    def _harness(self, names: Sequence[str]) -> Harness:
        spec = replace(self._spec, told={"optimize": list(names)})
        return Harness(self._engine, self._clock, spec, self._threads, self._params)


def _placed(found: Compared | SetResult, shortest: float, size: int) -> SetResult:
    """Return a row whose times are beside the shortest batch of the set of now."""
    if isinstance(found, Compared):
        row, gain, sure = found.row, found.speed.gain, found.speed.result is not Result.UNSURE
    elif found.now:
        row, gain, sure = found, 1.0, True
    else:
        return found
    row.seconds = shortest / gain
    row.per_second = size * gain / shortest
    row.gain, row.sure = gain, sure
    return row
