"""A trial: apply the wanted optimisations one after the other, and keep those that are worth having.

    apply ──▶ drift within its tolerance? ──▶ faster by the margin? ──yes, or unsure──▶ keep
                     │ no                            │ no
        by default   take back                       take back
        by name      refuse the model                keep, with a warning

On a machine too busy to tell, an optimisation is kept, and the trial is made again at the next load. A default is kept
untimed where a batch takes over half a second. Where a template forks the workers, defaults are timed after the first
answer (`time_later` in apply.py): until then, all that do not drift are kept (together.py).

Outputs are compared with the plain model's, times with those of the model without the optimisation at hand. Timed is
the stage that changes, with a full batch: `preprocess` where the reading of images does, `inference` for all others.
"""

import copy
import math
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from tsctl.handlers import wire
from tsctl.handlers.optimize.steps import INT8, READING, NotApplied, Steps, in_words
from tsctl.handlers.optimize.trials.drift import drift
from tsctl.handlers.optimize.trials.samples import CHECKED_ROWS
from tsctl.handlers.optimize.trials.speed import (
    BUDGET,
    DEFAULT_BUDGET,
    LONGEST_DEFAULT,
    Result,
    Speed,
    measured_rows,
    race,
)
from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.sdk.errors import HandlerError

Clock = Callable[[], float]


class Trial:
    """Tries optimisations on a handler.

    Args:
        place: where the times hold, for people: "2 threads of AMD EPYC".
        tolerances: optimisation → largest drift, where the archive names one.
        clock: returns seconds.
        drifts: optimisation → its drift, where an earlier trial has measured it.
        timed: whether optimisations are timed; else all that can be applied, and do not drift, are kept.

    Attributes:
        sure: no measurement of a speed was too disturbed to tell.

    Raises:
        NotApplied: the plain model fails on the sample.
    """

    def __init__(
        self,
        steps: Steps,
        tolerances: Mapping[str, float],
        place: str,
        clock: Clock,
        drifts: Mapping[str, float],
        *,
        timed: bool = True,
    ) -> None:
        self._steps = steps
        self._tolerances = tolerances
        self._place = place
        self._clock = clock
        self._drifts = drifts
        self._timed = timed
        self._expected = steps.sample.expected
        self.sure = True
        self._full: float | None = None  # seconds

    def attempt(self, name: str, by_name: bool) -> wire.Optimized:
        """Apply one optimisation, and keep one that is worth having.

        Raises:
            HandlerError: the optimisation was asked for by name, and cannot be applied or drifts too far.
        """
        began = time.perf_counter()
        steps, before = self._steps, self._copy(name)
        found: float | None = None
        agreed: float | None = None
        inputs = 0
        names = list(steps.done)
        try:
            steps.apply(name)
            if name == INT8:
                found, agreed, inputs = steps.compare_int8()
            else:
                found = self._drifts[name] if name in self._drifts else self._drift(name)
            self._check(name, found, agreed, inputs)
            speed, rows = (None, 0) if self._is_too_slow(name, by_name) else self._race(name, before, by_name)
        except Exception as error:  # noqa: BLE001 - a compiler may raise anything
            why = error if isinstance(error, NotApplied) else NotApplied(in_words(error))
            if by_name and not why.idle:
                raise HandlerError(f"`optimize: {name}` cannot be done: {why}") from why.__cause__
            self._take_back(name, before, names)
            return wire.Optimized(name, False, found, time.perf_counter() - began, message_of(why), idle=why.idle)
        if speed is None:
            return wire.Optimized(name, True, found, time.perf_counter() - began, agreement=agreed)
        self.sure = self.sure and speed.result is not Result.UNSURE
        text = self._no_gain(speed, rows) if speed.result is Result.NO_GAIN else ""
        if text and not by_name:
            self._take_back(name, before, names)
        seconds = time.perf_counter() - began
        kept = by_name or not text
        reason, warning = ("", text) if kept else (text, "")
        times = (rows, speed.without, speed.having)
        return wire.Optimized(name, kept, found, seconds, reason, times, warning, agreement=agreed)

    def _copy(self, name: str) -> Any:
        """Return a model that stays as the model is before an optimisation, which may change that one in place."""
        model = self._steps.handler.model
        if name in READING or name == "compile":
            return model
        if not self._timed:
            return None  # loaded again if it is needed, which is seldom
        try:
            return copy.deepcopy(model)
        except Exception:  # noqa: BLE001 - a model of the user's may refuse, in any way
            return None

    def _take_back(self, name: str, before: Any, names: list[str]) -> None:
        if before is None:
            self._steps.start_again(names)
            return
        self._steps.done = names
        self._steps.handler.model = before
        if name in READING:
            READING[name].stop_using(self._steps.handler)

    def _drift(self, name: str) -> float:
        if name in READING:
            return self._steps.reading_drift(name)
        return max(drift(self._expected, self._steps.infer(self._steps.sample.inputs)), self._steps.full_drift)

    def _check(self, name: str, found: float, agreed: float | None, inputs: int) -> None:
        """Raise NotApplied if a drift, or the agreement on so many inputs, is not tolerated."""
        most = self._steps.tolerance(name, self._tolerances)
        if agreed is None or not math.isfinite(found):
            if not found <= most:
                raise NotApplied(f"its drift is {found:.1e}, and {most:.1e} is tolerated")
        elif not 1 - agreed <= most:
            differ = f"on {inputs} inputs {1 - agreed:.1%} of the best classes differ, and {most:.1%} are tolerated"
            raise NotApplied(f"{differ}: name typical inputs as `warmup`, or raise `optimizeTolerance`")

    def _is_too_slow(self, name: str, by_name: bool) -> bool:
        """Return whether the first answer would wait too long for the times of a default."""
        if not self._timed:
            return True
        return not by_name and name not in READING and self._full_seconds() > LONGEST_DEFAULT

    def _full_seconds(self) -> float:
        """Return about how long a full batch takes, by the sample's `CHECKED_ROWS`; measured once."""
        if self._full is None:
            began = self._clock()
            self._steps.infer(self._steps.sample.inputs)
            self._full = (self._clock() - began) * self._steps.batch_size / CHECKED_ROWS
        return self._full

    def _race(self, name: str, before: Any, by_name: bool) -> tuple[Speed | None, int]:
        """Return the speed with an optimisation and without, and the rows of the batches that were timed.

        Returns:
            None and 0 if the model cannot be copied, so that none is left without the optimisation.
        """
        steps, handler = self._steps, self._steps.handler
        budget = BUDGET if by_name else DEFAULT_BUDGET
        if name in READING:
            usual, other = (partial(steps.read, name, steps.batch_size, usual=each) for each in (True, False))
            try:
                return race(usual, other, self._clock, budget), steps.batch_size
            finally:
                READING[name].use(handler)
        if before is None:
            return None, 0
        after, rows = handler.model, steps.batch_size
        if name != "compile":  # whose full batches run in a graph of their own
            rows = measured_rows(rows, self._full_seconds())
        inputs = steps.preprocess(rows)

        def run(model: Any) -> None:
            handler.model = model
            steps.infer(inputs)

        try:
            return race(lambda: run(before), lambda: run(after), self._clock, budget), rows
        finally:
            handler.model = after

    def _no_gain(self, speed: Speed, rows: int) -> str:
        times = f"{_ms(speed.having)} with it, {_ms(speed.without)} without it, on {self._place}"
        return f"it is no gain here: a batch of {rows} takes {times}"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 0.9995 else f"{seconds:.2f} s"
