"""Optimise a handler's model: as a check finds (check.py), or as an earlier one of the same archive here has found.

A default of the handler that cannot be applied, or drifts beyond its tolerance, is taken back. An optimisation asked
for by name that cannot be applied, or drifts, has the model rejected: the operator counts on the optimisation.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from tsctl.handlers import wire
from tsctl.handlers.names import AUTO
from tsctl.handlers.optimize.check import attempt, refused_set
from tsctl.handlers.optimize.checks.archive import archive_of
from tsctl.handlers.optimize.checks.drift import TOLERANCES
from tsctl.handlers.optimize.checks.outcomes import entry_of
from tsctl.handlers.optimize.checks.processor import read_processor
from tsctl.handlers.optimize.int8.calibration import Scales
from tsctl.handlers.optimize.packages.side_by_side import Apart, start
from tsctl.handlers.optimize.selected_steps import chosen, clash_of
from tsctl.handlers.optimize.steps import NotApplied, Steps, in_words
from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.gpu import device_of

_log = logging.getLogger(__name__)


def optimize(
    handler: Any,
    asked: Sequence[str] | None,
    model_dir: Path,
    config: Mapping[str, Any],
    batch_size: int,
    *,
    apart: Apart | None = None,
    beside: Apart | None = None,
) -> list[wire.Optimized]:
    """Optimise the model of an initialized handler.

    Args:
        handler: any object; only one with a `model` that is a `torch.nn.Module` can be optimised.
        asked: the optimisations asked for by name, None for the handler's defaults. With `auto` before them, a trial
            has chosen them: each is applied as it was found out before, or left out if nothing of that is kept.
        apart: where optimisations are checked, if not in this process, which must not run anything in parallel then.
        beside: starts processes with one thread each, which compile; None: all is compiled in this one.

    Returns:
        The outcome of each optimisation, in the order of application.

    Raises:
        HandlerError: an optimisation asked for by name cannot be applied or drifts too far, or `optimizeTolerance` is
            invalid.
    """
    wanted = chosen(asked, type(handler), on_gpu=device_of(handler).type == "cuda")
    if not wanted:
        return []
    if clash := clash_of(wanted):
        raise refused_set(", ".join(asked or ()), clash)
    tolerances = read_tolerances(config)
    by_trial = AUTO in (asked or ())
    outcomes: list[wire.Optimized] | None = None
    try:
        steps = Steps(handler, model_dir, config, batch_size, beside, compiles=not by_trial)
        with entry_of(_facts(steps, wanted, tolerances, model_dir)) as entry:
            if entry.outcomes is not None:
                steps.scales = entry.scales
                outcomes = _repeat(steps, entry.outcomes, dict.fromkeys(wanted, False) if by_trial else wanted)
            elif not by_trial:
                outcomes = _checked(steps, wanted, tolerances, apart, entry.keep)
    except NotApplied as error:
        if any(wanted.values()) and not by_trial:
            raise refused_set(", ".join(asked or ()), str(error)) from error.__cause__
        outcomes = _without(wanted, error)
    if outcomes is None:  # the model is unchanged
        usual = optimize(handler, None, model_dir, config, batch_size, apart=apart, beside=beside)
        return usual + [_left_out(name, "no trial of it is kept here") for name, by_name in wanted.items() if by_name]
    for outcome in outcomes:
        if not outcome.applied and not outcome.idle:
            _log.warning("the model is served without the optimisation %s: %s", outcome.name, outcome.reason)
    return outcomes


def _checked(
    steps: Steps,
    wanted: Mapping[str, bool],
    tolerances: Mapping[str, float],
    apart: Apart | None,
    keep: Callable[[list[wire.Optimized], Scales | None], None],
) -> list[wire.Optimized]:
    """Apply what does not drift, one after the other.

    Args:
        keep: keeps the outcomes for later loads.
    """

    def check() -> tuple[list[wire.Optimized], Scales | None]:
        _ = steps.sample  # found now, with the plain model's output; raises if that model fails on all of them
        return [attempt(steps, tolerances, name, by_name) for name, by_name in wanted.items()], steps.scales

    if apart is None:
        outcomes, _ = check()
        keep(outcomes, steps.scales)
        return outcomes
    try:
        outcomes, steps.scales = start(apart, check, HandlerError, NotApplied)()
    except ChildProcessError as error:
        raise NotApplied(f"the process that checked them died ({error})") from None
    keep(outcomes, steps.scales)
    return _repeat(steps, outcomes, wanted, took=True)


def _without(wanted: Mapping[str, bool], error: NotApplied) -> list[wire.Optimized]:
    """Return the outcomes where the handler's model cannot be optimised at all."""
    _log.info("the model is served without optimisations: %s", error)
    return [msgspec.structs.replace(_left_out(name, message_of(error)), idle=True) for name in wanted]


def _left_out(name: str, reason: str) -> wire.Optimized:
    return wire.Optimized(name, False, None, 0.0, reason)


def _facts(
    steps: Steps, wanted: Mapping[str, bool], tolerances: Mapping[str, float], model_dir: Path
) -> dict[str, Any]:
    """Return all that the outcomes hang on."""
    return {
        "archive": archive_of(model_dir), "where": _where(steps.handler), "torch": str(torch.__version__),
        "batch_size": steps.batch_size, "wanted": wanted, "tolerances": tolerances, "samples": steps.samples_digest,
    }  # fmt: skip


def read_tolerances(config: Mapping[str, Any]) -> dict[str, float]:
    """Parse `optimizeTolerance` of `model-config.yaml`: optimisation → largest drift.

    Raises:
        HandlerError: the value is not a mapping of optimisations to non-negative numbers.
    """
    given = config.get("optimizeTolerance") or {}
    if not isinstance(given, dict) or not all(
        name in TOLERANCES and type(value) in (int, float) and value >= 0 for name, value in given.items()
    ):
        what = f"a mapping of {', '.join(TOLERANCES)} to numbers"
        raise HandlerError(f"model-config.yaml: `optimizeTolerance` is {given!r}; expected {what}")
    return {name: float(value) for name, value in given.items()}


def _where(handler: Any) -> str:
    device = device_of(handler)
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(read_processor())


def _repeat(
    steps: Steps, outcomes: Sequence[wire.Optimized], wanted: Mapping[str, bool], *, took: bool = False
) -> list[wire.Optimized]:
    """Apply what a check has kept.

    Args:
        took: whether the check's seconds are told, too.
    """
    done: list[wire.Optimized] = []
    for outcome in outcomes:
        began, names = time.perf_counter(), list(steps.done)
        try:
            if outcome.applied:
                steps.apply(outcome.name)
        except Exception as error:
            if wanted[outcome.name]:
                raise refused_set(outcome.name, in_words(error)) from error
            steps.start_again(names)
            outcome = msgspec.structs.replace(outcome, applied=False, reason=in_words(error))
        seconds = time.perf_counter() - began + outcome.seconds * took
        done.append(msgspec.structs.replace(outcome, seconds=seconds, known=not took))
    return done
