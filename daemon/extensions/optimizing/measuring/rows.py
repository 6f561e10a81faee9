"""The measurement: each set in a throw-away worker of its own, one after the other, which bounds the memory.

As the workers take no turns, the plain model is measured once more at the end: by that the verdict knows whether the
machine was as fast all the while.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.job import Param
from tsctl.daemon.core.machine.processes import process_facts
from tsctl.daemon.extensions.optimizing.measuring.candidates import OptimizationSet
from tsctl.daemon.extensions.optimizing.measuring.harness import Harness, HarnessLoadFailed, SampleFailed
from tsctl.daemon.workers.engine import Engine, Worker, WorkerSpec, local_pid
from tsctl.handlers.wire import Optimized

_CANNOT = "cannot be done: "  # after the name of the exception and that of the optimisation
_SAME = 2  # refusals in a row for one reason: then no optimisation can be applied

Tell = Callable[..., None]  # stage, **facts


class NothingToOptimize(Exception):
    """The handler has no model that can be optimised; the message is the worker's reason."""


class SetResult(msgspec.Struct, kw_only=True, rename="camel"):
    """One set, measured or refused.

    Attributes:
        optimize: the set in one word.
        now: the model is registered with this set.
        seconds: of a full batch, the median; None if the set was refused.
        per_second: requests, in full batches.
        drift: the largest of the applied optimisations; None if none is told.
        agreement: the smallest fraction of best classes that stay the same; None where there are no classes.
        memory: resident bytes of the worker.
        load: seconds until the worker was ready, with the comparisons and measurements of a first load; in a trial of
            the daemon those of a later load, without what it had to wait for a core.
        outcomes: of each optimisation.
        refused: why there is no such worker; empty if there is.
        missing: why an optimisation of the set was left out; empty if none was.
        gain: how many times as fast as the set of now, measured in turns; None for `tsctl optimize`, which takes none.
        sure: whether other programs disturbed the turns by less than the gain.
    """

    optimize: str
    now: bool
    seconds: float | None = None
    per_second: float | None = None
    drift: float | None = None
    agreement: float | None = None
    memory: int = 0
    load: float = 0.0
    outcomes: list[dict[str, Any]] = []
    refused: str = ""
    missing: str = ""
    gain: float | None = None
    sure: bool = True


class Measuring:
    """Measures sets of optimisations.

    Args:
        spec: of the workers, with the batch size to measure.
        threads: of each worker.
        params: of the request repeated in all batches.
        seconds: how long each set is measured.
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
    ) -> None:
        self._engine, self._clock, self._tell = engine, clock, tell
        self._spec, self._threads, self._params, self._seconds = spec, threads, params, seconds

    async def run(self, sets: Sequence[OptimizationSet]) -> tuple[list[SetResult], float]:
        """Measure all sets, of which the first is the plain model.

        Returns:
            The rows, and the seconds of a batch of the plain model at the end.

        Raises:
            HarnessLoadFailed: the plain model does not load.
            SampleFailed: the plain model cannot answer the request.
            NothingToOptimize: no optimisation can be applied, for one and the same reason.
        """
        rows: list[SetResult] = []
        steps = len(sets) + 1
        plain, *others = sets
        rows.append(await self._measured(plain, 0, steps))
        for candidate in others:
            try:
                row = await self._measured(candidate, len(rows), steps)
            except HarnessLoadFailed as error:
                row = SetResult(optimize=candidate.text, now=candidate.now, refused=reason_of(str(error)))
            except SampleFailed as error:
                reason = f"cannot answer the request: {str(error).splitlines()[0]}"
                row = SetResult(optimize=candidate.text, now=candidate.now, refused=reason)
            rows.append(row)
            self._tell("measured", **msgspec.to_builtins(row))
            refusals = [each.refused for each in rows[1:]]
            if len(refusals) >= _SAME and refusals[0] and set(refusals) == {refusals[0]}:
                raise NothingToOptimize(refusals[0])
        again = await self._measured(plain, len(sets), steps)
        assert again.seconds is not None
        return rows, again.seconds

    async def _measured(self, candidate: OptimizationSet, done: int, total: int) -> SetResult:
        size = self._spec.batch_size
        spec = replace(self._spec, told={"optimize": list(candidate.names)})
        harness = Harness(self._engine, self._clock, spec, self._threads, self._params)
        self._tell("loading", optimize=candidate.text, done=done, total=total)
        try:
            await harness.start()
            self._tell("measuring", optimize=candidate.text, done=done, total=total)
            median = statistics.median(await harness.measure(size, self._seconds))
            return row_of(candidate, harness.worker, median, size)
        finally:
            await harness.close()


def reason_of(message: str) -> str:
    """Return the reason in a worker's message, without the names in front of it."""
    return message.partition(_CANNOT)[2] or message


def row_of(candidate: OptimizationSet, worker: Worker, seconds: float, size: int) -> SetResult:
    """Return the row of a set, by a worker that has loaded it, and the seconds of its batches of this size."""
    outcomes: Sequence[Optimized] = () if worker.report is None else worker.report.optimized
    applied = [each for each in outcomes if each.applied]
    left_out = [each for each in outcomes if not each.applied and each.name in candidate.names]
    return SetResult(
        optimize=candidate.text,
        now=candidate.now,
        seconds=seconds,
        per_second=size / seconds,
        drift=max((each.drift for each in applied if each.drift is not None), default=None),
        agreement=min((each.agreement for each in applied if each.agreement is not None), default=None),
        memory=process_facts(local_pid(worker)).memory,
        load=worker.load_time,
        outcomes=[
            {"name": each.name, "applied": each.applied, "drift": _finite(each.drift), "reason": each.reason}
            for each in outcomes
        ],
        missing="; ".join(f"{each.name} was left out: {each.reason}" for each in left_out),
    )


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
