"""The check of optimisations, one after the other: each is applied, and its answers are compared.

    apply ──▶ drift within its tolerance? ──yes──▶ keep
                     │ no
        by default   take back
        by name      refuse the model

They are compared with the plain model's. Which optimisations make a model faster is not asked here: a trial of the
daemon (`optimize: auto`) and `tsctl optimize` compare whole sets.
"""

import math
import time
from collections.abc import Mapping

from tsctl.handlers import wire
from tsctl.handlers.optimize.checks.drift import drift
from tsctl.handlers.optimize.steps import INT8, READING, NotApplied, Steps, in_words
from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.sdk.errors import HandlerError


class Check:
    """Checks optimisations on a handler.

    Args:
        tolerances: optimisation → largest drift, where the archive names one.

    Raises:
        NotApplied: the plain model fails on the sample.
    """

    def __init__(self, steps: Steps, tolerances: Mapping[str, float]) -> None:
        self._steps = steps
        self._tolerances = tolerances
        self._expected = steps.sample.expected

    def attempt(self, name: str, by_name: bool) -> wire.Optimized:
        """Apply one optimisation, and keep it if it can be done, and does not drift.

        Raises:
            HandlerError: the optimisation was asked for by name, and cannot be applied or drifts too far.
        """
        began, names = time.perf_counter(), list(self._steps.done)
        found: float | None = None
        agreed: float | None = None
        inputs = 0
        try:
            self._steps.apply(name)
            if name == INT8:
                found, agreed, inputs = self._steps.compare_int8()
            else:
                found = self._drift(name)
            self._compare(name, found, agreed, inputs)
        except Exception as error:  # noqa: BLE001 - a compiler may raise anything
            why = error if isinstance(error, NotApplied) else NotApplied(in_words(error))
            if by_name and not why.idle:
                raise HandlerError(f"`optimize: {name}` cannot be done: {why}") from why.__cause__
            if not why.idle:  # raised before anything has changed
                self._steps.start_again(names)
            return wire.Optimized(name, False, found, time.perf_counter() - began, message_of(why), idle=why.idle)
        reached = self._steps.reached.get(name, "")
        return wire.Optimized(name, True, found, time.perf_counter() - began, reached, agreement=agreed)

    def _drift(self, name: str) -> float:
        if name in READING:
            return self._steps.reading_drift(name)
        return max(drift(self._expected, self._steps.infer(self._steps.sample.inputs)), self._steps.full_drift)

    def _compare(self, name: str, found: float, agreed: float | None, inputs: int) -> None:
        """Raise NotApplied if a drift, or the agreement on so many inputs, is not tolerated."""
        most = self._steps.tolerance(name, self._tolerances)
        if agreed is None or not math.isfinite(found):
            if not found <= most:
                raise NotApplied(f"its drift is {found:.1e}, and {most:.1e} is tolerated")
        elif not 1 - agreed <= most:
            differ = f"on {inputs} inputs {1 - agreed:.1%} of the best classes differ, and {most:.1%} are tolerated"
            raise NotApplied(f"{differ}: name typical inputs as `warmup`, or raise `optimizeTolerance`")
