"""The measurement: each set in turns with the set of now, which bears other work on the machine.

    the set of now    loaded first, and kept to the end
    each other set    loaded by its names, which checks and compiles; in a trial then as the daemon would load it, with
                      the findings of the first load; then batches of both in turns

Times of different sets are made comparable by those of the set of now: a row's `seconds` are its shortest ones, divided
by the gain.

Two sets are compared so:

    turn   1                  2                  3
           without, having    having, without    without, having     …

Other programs of the machine only ever add time, to neighbours in the sequence alike. So the shortest time of each side
is compared: ResNet-18 with `fold` and without, five turns on two cores beside other work, twelve times over: 1.01 to
1.05 by the shortest times, 0.77 to 1.04 by the medians. Where even the shortest is not repeatable the result is unsure.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, auto
from heapq import nsmallest
from math import inf
from typing import NamedTuple

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.job import Param
from tsctl.daemon.core.machine.processes import process_facts
from tsctl.daemon.extensions.optimizing.choice import TrialRow
from tsctl.daemon.extensions.optimizing.measuring.candidates import OptimizationSet
from tsctl.daemon.extensions.optimizing.measuring.harness import Harness, HarnessLoadFailed, SampleFailed
from tsctl.daemon.workers.engine import Engine, Worker, WorkerSpec, local_pid
from tsctl.handlers.names import AUTO, NO_OPTIMIZATION
from tsctl.handlers.wire import Optimized

MARGIN = 1.02  # the least gain that counts
STEADY = 1.05  # a machine on which a side's second shortest time is at most so many times its shortest is quiet
LEAST_TURNS, USUAL_TURNS, MOST_TURNS = 2, 3, 15
CLEAR = 1.25  # a gain, or its inverse a loss, that needs no more than the usual turns


class Result(Enum):
    """Whether a set is faster."""

    FASTER = auto()
    NO_GAIN = auto()
    UNSURE = auto()  # other programs disturb the measurement by more than what there is to see


class Speed(NamedTuple):
    """Seconds that a batch takes without the set, and having it: the shortest of the measured.

    Attributes:
        noise: how many times longer the second shortest is; of the two sides the larger number.
    """

    without: float
    having: float
    noise: float = 1.0

    @property
    def gain(self) -> float:
        """How many times faster; below 1 for a loss."""
        return self.without / self.having if self.having else inf

    @property
    def result(self) -> Result:
        if self.gain >= MARGIN:
            return Result.FASTER if self.gain >= self.noise else Result.UNSURE
        return Result.NO_GAIN if self.noise <= STEADY or self.gain <= 1 / self.noise else Result.UNSURE


def judge(without: Sequence[float], having: Sequence[float]) -> Speed:
    """Return the speed that measured seconds show, at least two of each."""
    (best, second), (our_best, our_second) = nsmallest(2, without), nsmallest(2, having)
    noise = max(second / best if best else inf, our_second / our_best if our_best else inf)
    return Speed(best, our_best, noise)


def is_enough(
    without: Sequence[float], having: Sequence[float], elapsed: float, budget: float, patience: float = 0.0
) -> bool:
    """Return whether no further turn is needed after so many seconds.

    Args:
        budget: seconds after which no further turn begins if the result is sure; after twice as many in any case.
        patience: seconds after which a result that is still unsure ends, too, where that is later.
    """
    turns = len(without)
    if turns < LEAST_TURNS or (turns < USUAL_TURNS and elapsed < 2 * budget):
        return False
    speed = judge(without, having)
    unsure = speed.result is Result.UNSURE
    if turns >= MOST_TURNS or elapsed >= 2 * budget:
        return not unsure or elapsed >= patience
    clear = not 1 / CLEAR < speed.gain < CLEAR
    return not unsure and (clear or elapsed >= budget)


# In a trial an unsure result goes on for so many times `seconds`, a minute: what was compiled for it has taken longer,
# and the whole trial would be made again.
PATIENCE = 30

Tell = Callable[..., None]  # stage, **facts


class Compared(NamedTuple):
    """A set that was compared: its worker's report, and its speed beside the set of now."""

    row: TrialRow
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
        trial: sets are measured as the daemon would load them, and the result of each is to be sure; else as they are
            loaded for the first time.
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
        *,
        trial: bool,
        processor_time: Callable[[Worker], float] = processor_time,
    ) -> None:
        self._engine, self._clock, self._tell, self._processor_time = engine, clock, tell, processor_time
        self._spec, self._threads, self._params, self._seconds = spec, threads, params, seconds
        self._trial = trial

    async def measure_sets(self, sets: Sequence[OptimizationSet]) -> list[TrialRow]:
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
            reference = row_of(now, ours.worker, load, await ours.measure(self._spec.batch_size), self._spec.batch_size)
            found: dict[str, Compared | TrialRow] = {}
            for done, candidate in enumerate([each for each in sets if not each.now], 1):
                found[candidate.text] = await self._compared(candidate, ours, done, len(sets))
        finally:
            await ours.close()
        shortest = min([each.speed.without for each in found.values() if isinstance(each, Compared)], default=None)
        return [
            _placed(found.get(each.text, reference), shortest or reference.seconds or 0.0, self._spec.batch_size)
            for each in sets
        ]

    async def _compared(self, candidate: OptimizationSet, ours: Harness, done: int, total: int) -> Compared | TrialRow:
        names = candidate.names
        self._tell("loading", optimize=candidate.text, done=done, total=total)
        theirs: Harness | None = None
        try:
            if self._trial and NO_OPTIMIZATION not in names:
                await self._prepare(names)
                names = (AUTO, *names)
            theirs = self._harness(names)
            await theirs.start()
            load = self._load_of(theirs)
            self._tell("measuring", optimize=candidate.text, done=done, total=total)
            speed = await self._race(ours, theirs)
            return Compared(row_of(candidate, theirs.worker, load, speed.having, self._spec.batch_size), speed)
        except HarnessLoadFailed as error:
            return TrialRow(optimize=candidate.text, now=False, refused=error.refused or str(error))
        except SampleFailed as error:
            reason = f"cannot answer the request: {str(error).splitlines()[0]}"
            return TrialRow(optimize=candidate.text, now=False, refused=reason)
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
        patience = PATIENCE * self._seconds if self._trial else 0.0
        while not is_enough(without, having, time.monotonic() - began, self._seconds, patience):
            sides = [(ours, without), (theirs, having)]
            for harness, into in sides if len(without) % 2 == 0 else reversed(sides):
                into.append(await harness.measure(self._spec.batch_size))
        return judge(without, having)

    def _load_of(self, harness: Harness) -> float:
        """Return the seconds in which a worker has just loaded; in a trial as if it had had a core to itself."""
        worker = harness.worker
        taken = self._processor_time(worker) if self._trial else 0.0
        return min(worker.load_time, taken or worker.load_time)

    def _harness(self, names: Sequence[str]) -> Harness:
        spec = replace(self._spec, told={**self._spec.told, "optimize": list(names)})
        return Harness(self._engine, self._clock, spec, self._threads, self._params)


def row_of(candidate: OptimizationSet, worker: Worker, load: float, seconds: float, size: int) -> TrialRow:
    """Return the row of a set, by a worker that has loaded it, and the seconds of its batches of this size."""
    outcomes: Sequence[Optimized] = () if worker.report is None else worker.report.optimized
    applied = [each for each in outcomes if each.applied]
    left_out = [each for each in outcomes if not each.applied and each.name in candidate.names]
    return TrialRow(
        optimize=candidate.text,
        now=candidate.now,
        seconds=seconds,
        per_second=size / seconds,
        drift=max((each.drift for each in applied if each.drift is not None), default=None),
        agreement=min((each.agreement for each in applied if each.agreement is not None), default=None),
        memory=process_facts(local_pid(worker)).memory,
        load=load,
        outcomes=[
            {"name": each.name, "applied": each.applied, "drift": _finite(each.drift), "reason": each.reason}
            for each in outcomes
        ],
        missing="; ".join(f"{each.name} was left out: {each.reason}" for each in left_out),
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _placed(found: Compared | TrialRow, shortest: float, size: int) -> TrialRow:
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
