"""The check of optimisations, one after the other: each is applied, and its answers are compared.

    apply ──▶ drift within its tolerance? ──yes──▶ keep
              best classes kept?
                     │ no
        by default   take back
        by name      refuse the model

Where answers are classes, what is more than rounding is judged by these: numbers that are close say little of them.
They are compared with the plain model's. Which optimisations make a model faster is not asked here: a trial of the
daemon (`optimize: auto`) and `tsctl optimize` compare whole sets.
"""

import math
import time
from collections.abc import Mapping

from tsctl.handlers import wire
from tsctl.handlers.optimize.checks.drift import CLASSES_LOST, drift
from tsctl.handlers.optimize.steps import READING, SCALED_DECODE, NotApplied, Steps, in_words
from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.sdk.errors import HandlerError


def attempt(steps: Steps, tolerances: Mapping[str, float], name: str, by_name: bool) -> wire.Optimized:
    """Apply one optimisation, and keep it if it can be done, and does not drift.

    Args:
        steps: with the plain model's sample.
        tolerances: optimisation → largest drift, where the archive names one.

    Raises:
        HandlerError: the optimisation was asked for by name, and cannot be applied or drifts too far.
    """
    began, names = time.perf_counter(), list(steps.done)
    found: float | None = None
    agreed: float | None = None
    inputs = 0
    lost = steps.classes_lost(name, tolerances)
    try:
        if lost is not None:
            steps.note_expected(name)
        steps.apply(name)
        most = steps.tolerance(name, tolerances)
        if lost is None:
            found = _drift(steps, name)
        else:
            found, agreed, inputs = steps.compare_classes(name)
        if agreed is None or lost is None or not math.isfinite(found):
            _check_drift(most, found)
        else:
            if name == SCALED_DECODE or name not in CLASSES_LOST:  # pixels; and rounding, after bf16
                _check_drift(most, max(found, steps.full_drift))
            _check_classes(agreed, lost, inputs)
    except Exception as error:  # noqa: BLE001 - a compiler may raise anything
        why = error if isinstance(error, NotApplied) else NotApplied(in_words(error))
        if by_name and not why.idle:
            raise refused_set(name, str(why)) from why.__cause__
        if not why.idle:  # raised before anything has changed
            steps.start_again(names)
        return wire.Optimized(name, False, found, time.perf_counter() - began, message_of(why), idle=why.idle)
    reached = steps.reached.get(name, "")
    wanted = None if agreed is None or lost is None else 1 - lost
    seconds = time.perf_counter() - began
    return wire.Optimized(name, True, found, seconds, reached, agreement=agreed, wanted=wanted, inputs=inputs)


def refused_set(names: str, reason: str) -> HandlerError:
    """Return the error of a model for which optimisations that were asked for by name cannot be done."""
    return HandlerError(f"`optimize: {names}` cannot be done: {reason}", reason)


def _drift(steps: Steps, name: str) -> float:
    if name in READING:
        return steps.reading_drift(name)
    return max(drift(steps.sample.expected, steps.infer(steps.sample.inputs)), steps.full_drift)


def _check_drift(most: float, found: float) -> None:
    if not found <= most:
        raise NotApplied(f"its drift is {found:.1e}, and {most:.1e} is tolerated")


def _check_classes(agreed: float, lost: float, inputs: int) -> None:
    if not 1 - agreed <= lost:
        differ = f"on {inputs} inputs {1 - agreed:.1%} of the best classes differ, and {lost:.1%} are tolerated"
        raise NotApplied(f"{differ}: name typical inputs as `warmup`, or raise `optimizeTolerance`")
