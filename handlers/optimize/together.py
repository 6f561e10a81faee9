"""Defaults that are applied at once, and whose drift is checked once: for a first answer that comes soon.

    plain model ──fork──▶ its answers ───────────────────┐
         │ all are applied                               ├─▶ the drift of all together
         └────────────────fork──▶ the optimised answers ─┘

Most of a model's first batch goes by while oneDNN prepares each layer, on one thread: so both processes run at the same
time. ResNet-152 on two cores: 1.0 s, and 1.7 s one after the other. Where all together drift too far, or anything
fails, the plain model is loaded again, and they are checked one after the other (check.py).
"""

import io
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import torch

from tsctl.handlers import wire
from tsctl.handlers.optimize.apart import Apart
from tsctl.handlers.optimize.checks.drift import drift
from tsctl.handlers.optimize.steps import READING, NotApplied, Steps
from tsctl.handlers.requests.excerpt import message_of

_log = logging.getLogger(__name__)


class _Compared(NamedTuple):
    """The number of the sample's row, the model's output for it, and the drift of each optimisation of the reading."""

    row: int
    output: Any
    readings: dict[str, float]


def apply_together(
    steps: Steps, names: Sequence[str], tolerances: Mapping[str, float], apart: Apart
) -> list[wire.Optimized] | None:
    """Apply defaults to a plain model, and check the drift of all of them together.

    Args:
        apart: both models answer there. This process must not run anything in parallel.

    Returns:
        The outcomes; the drift of each that changes the model is that of all. None if they drift, or if anything
        fails: the model is a plain one again then.
    """
    try:
        wait_for_plain = apart(partial(_answer, steps, ()))
        try:
            outcomes = [_apply(steps, name) for name in names]
            applied = [each.name for each in outcomes if each.applied]
            began = time.perf_counter()
            wait_for_optimized = apart(partial(_answer, steps, [name for name in applied if name in READING]))
        except BaseException:
            wait_for_plain()
            raise
        plain, optimized = map(_decode, _both(wait_for_plain, wait_for_optimized))
    except Exception as error:  # noqa: BLE001 - a model of the user's may raise anything; the check tells it
        _log.debug("the defaults are checked one after the other: %s", message_of(error))
        steps.start_again([])
        return None
    found = optimized.readings | {
        name: drift(plain.output, optimized.output) for name in applied if name not in READING
    }
    same_row = plain.row == optimized.row
    if not same_row or not all(found[name] <= steps.tolerance(name, tolerances) for name in applied):
        steps.start_again([])
        return None
    waited = time.perf_counter() - began
    last = applied[-1] if applied else ""
    return [
        msgspec.structs.replace(each, drift=found.get(each.name), seconds=each.seconds + waited * (each.name == last))
        for each in outcomes
    ]


def _apply(steps: Steps, name: str) -> wire.Optimized:
    began = time.perf_counter()
    try:
        steps.apply(name)
    except NotApplied as why:  # raised before anything has changed
        return wire.Optimized(name, False, None, time.perf_counter() - began, message_of(why), idle=why.idle)
    return wire.Optimized(name, True, None, time.perf_counter() - began, steps.reached.get(name, ""))


def _both(*waiting: Callable[[], bytes]) -> list[bytes]:
    """Wait for processes to their ends, also if one has died."""
    results, died = [], None
    for wait in waiting:
        try:
            results.append(wait())
        except ChildProcessError as error:
            died = error
    if died is not None:
        raise died
    return results


def _answer(steps: Steps, readings: Sequence[str]) -> bytes:
    """Return the encoded answers of the present model, to inputs that are read as usual."""
    for each in READING.values():
        each.stop_using(steps.handler)
    sample = steps.sample
    apart = {name: steps.reading_drift(name) for name in readings}
    file = io.BytesIO()
    torch.save((sample.number, sample.expected, apart), file)
    return file.getvalue()


def _decode(result: bytes) -> _Compared:
    # The process was forked from this one: its output may be of any class of the model's own.
    return _Compared(*torch.load(io.BytesIO(result), weights_only=False))
