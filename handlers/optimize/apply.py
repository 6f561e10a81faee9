"""Optimise a handler's model: as a trial finds (trial.py), or as an earlier one of the same archive here has found.

A default of the handler that cannot be applied, drifts beyond its tolerance, or is no faster is taken back. An
optimisation asked for by name that cannot be applied, or drifts, has the model rejected: the operator counts on the
optimisation. One that is no faster is kept, and named in the log and in `tsctl describe`.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from tsctl.handlers import wire
from tsctl.handlers.names import AUTO
from tsctl.handlers.optimize.apart import Apart
from tsctl.handlers.optimize.asked import chosen, clash_of
from tsctl.handlers.optimize.int8.calibration import Scales
from tsctl.handlers.optimize.steps import NotApplied, Steps, in_words
from tsctl.handlers.optimize.together import apply_together
from tsctl.handlers.optimize.trial import Clock, Trial
from tsctl.handlers.optimize.trials.archive import archive_of
from tsctl.handlers.optimize.trials.drift import TOLERANCES
from tsctl.handlers.optimize.trials.processor import read_processor
from tsctl.handlers.optimize.trials.speed import MARGIN
from tsctl.handlers.optimize.trials.verdicts import entry_of
from tsctl.handlers.requests.excerpt import message_of
from tsctl.handlers.sdk.errors import HandlerError

_log = logging.getLogger(__name__)


def optimize(
    handler: Any,
    asked: Sequence[str] | None,
    model_dir: Path,
    config: Mapping[str, Any],
    batch_size: int,
    *,
    threads: int = 0,
    apart: Apart | None = None,
    beside: Apart | None = None,
    put_off: Callable[[], None] | None = None,
    clock: Clock = time.perf_counter,
) -> list[wire.Optimized]:
    """Optimise the model of an initialized handler.

    Args:
        handler: any object; only one with a `model` that is a `torch.nn.Module` can be optimised.
        asked: the optimisations asked for by name, None for the handler's defaults. With `auto` before them, a trial
            has chosen them: each is applied as it was found out before, or left out if nothing of that is kept.
        threads: those that the model will have; 0 for this process's.
        apart: where a trial runs, if not in this process, which must not run anything in parallel then.
        beside: starts processes with one thread each, which compile; None: all is compiled in this one.
        put_off: if given, defaults, where no others are wanted, are checked and not timed, times that an earlier trial
            could not tell for sure are not measured again, and the function is called where `time_later` has something
            to do.
        clock: returns seconds; times the model in a trial.

    Returns:
        The outcome of each optimisation, in the order of application.

    Raises:
        HandlerError: an optimisation asked for by name cannot be applied or drifts too far, or `optimizeTolerance` is
            invalid.
    """
    wanted = chosen(asked, type(handler))
    if not wanted:
        return []
    if clash := clash_of(wanted):
        raise HandlerError(f"`optimize: {', '.join(asked or ())}` cannot be done: {clash}")
    tolerances = read_tolerances(config)
    if AUTO in (asked or ()):
        known = _as_known(handler, wanted, tolerances, model_dir, config, batch_size, threads)
        if known is not None:
            return known
        usual = optimize(
            handler, None, model_dir, config, batch_size,
            threads=threads, apart=apart, beside=beside, put_off=put_off, clock=clock,
        )  # fmt: skip
        return usual + [_left_out(name, "no trial of it is kept here") for name, by_name in wanted.items() if by_name]
    try:
        steps = Steps(handler, model_dir, config, batch_size, beside)
        way = Way(
            wanted, tolerances, batch_size, threads or torch.get_num_threads(), _where(handler), steps.samples_digest
        )
        later = put_off is not None and not any(wanted.values())
        with entry_of(way.facts(model_dir)) as entry:
            together = None
            if entry.outcomes is None and later and apart is not None:
                together = apply_together(steps, list(wanted), tolerances, apart)
            if together is not None:
                outcomes, timed = together, False
                entry.keep(outcomes, timed=False)
            elif entry.outcomes is None or not (entry.timed or put_off is not None):
                attempt = partial(_attempt, steps, way, clock, entry.outcomes or (), timed=not later)
                tried = attempt() if apart is None else _attempt_apart(attempt, apart)
                # One that is unsure is made once more, at the next load, and holds up no further one.
                timed = not later and (tried.sure or entry.outcomes is not None)
                entry.keep(tried.outcomes, tried.scales, timed=timed)
                steps.scales = tried.scales
                outcomes = tried.outcomes if apart is None else _repeat(steps, tried.outcomes, wanted, took=True)
            else:
                steps.scales = entry.scales
                outcomes, timed = _repeat(steps, entry.outcomes, wanted), entry.timed
            if put_off is not None and not timed and any(outcome.applied for outcome in outcomes):
                put_off()
    except NotApplied as error:
        if any(wanted.values()):
            raise HandlerError(f"`optimize: {', '.join(asked or ())}` cannot be done: {error}") from error.__cause__
        outcomes = _without(wanted, error)
    for outcome in outcomes:
        _note(outcome)
    return outcomes


def _as_known(
    handler: Any,
    wanted: Mapping[str, bool],
    tolerances: Mapping[str, float],
    model_dir: Path,
    config: Mapping[str, Any],
    batch_size: int,
    threads: int,
) -> list[wire.Optimized] | None:
    """Optimise as an earlier trial of these very optimisations has found; nothing is compared, timed or compiled.

    Returns:
        None if nothing of such a trial is kept; the model is unchanged.
    """
    try:
        steps = Steps(handler, model_dir, config, batch_size, compiles=False)
        way = Way(
            wanted, tolerances, batch_size, threads or torch.get_num_threads(), _where(handler), steps.samples_digest
        )
        with entry_of(way.facts(model_dir)) as entry:
            if entry.outcomes is None:
                return None
            steps.scales = entry.scales
            outcomes = _repeat(steps, entry.outcomes, dict.fromkeys(wanted, False))
    except NotApplied as error:
        outcomes = _without(wanted, error)
    outcomes = [msgspec.structs.replace(outcome, warning="") for outcome in outcomes]  # nobody asked for it by name
    for outcome in outcomes:
        _note(outcome)
    return outcomes


def _without(wanted: Mapping[str, bool], error: NotApplied) -> list[wire.Optimized]:
    """Return the outcomes where the handler's model cannot be optimised at all."""
    _log.info("the model is served without optimisations: %s", error)
    return [msgspec.structs.replace(_left_out(name, message_of(error)), idle=True) for name in wanted]


def _left_out(name: str, reason: str) -> wire.Optimized:
    return wire.Optimized(name, False, None, 0.0, reason)


def is_unsure(
    handler: Any,
    asked: Sequence[str] | None,
    model_dir: Path,
    config: Mapping[str, Any],
    batch_size: int,
    threads: int,
) -> bool:
    """Return whether an earlier load has kept a trial of the optimisations whose times are not sure."""
    wanted = chosen(asked, type(handler))
    try:
        steps = Steps(handler, model_dir, config, batch_size)
    except NotApplied:
        return False
    way = Way(wanted, read_tolerances(config), batch_size, threads, _where(handler), steps.samples_digest)
    with entry_of(way.facts(model_dir)) as entry:
        return entry.outcomes is not None and not entry.timed


def time_later(
    handler: Any,
    asked: Sequence[str] | None,
    model_dir: Path,
    config: Mapping[str, Any],
    batch_size: int,
    threads: int,
    clock: Clock = time.perf_counter,
) -> bool:
    """Time the optimisations that `optimize` has put off, and keep the outcomes for later loads.

    The handler is of no use afterwards: all are taken back first, and applied one after the other.

    Returns:
        Whether a default that `optimize` has applied costs more than it gains: the model had better be loaded anew.
    """
    wanted = chosen(asked, type(handler))
    tolerances = read_tolerances(config)
    steps = Steps(handler, model_dir, config, batch_size)
    way = Way(wanted, tolerances, batch_size, threads, _where(handler), steps.samples_digest)
    steps.start_again([])
    facts = way.facts(model_dir)
    with entry_of(facts) as entry:
        known = entry.outcomes or []
    tried = _attempt(steps, way, clock, known)  # without the lock, for which loads would wait
    again = all(outcome.speed is None for outcome in known) and not tried.sure  # once more, after the next load
    with entry_of(facts) as entry:
        entry.keep(tried.outcomes, tried.scales, timed=not again)
    before = {outcome.name for outcome in known if outcome.applied}
    taken_back = [outcome for outcome in tried.outcomes if outcome.name in before and not outcome.applied]
    return any(each.speed is not None and each.speed[2] > MARGIN * each.speed[1] for each in taken_back)


class Way(NamedTuple):
    """The way to run a model for which the outcome of a trial holds; `samples` is a digest of the archive's."""

    wanted: Mapping[str, bool]
    tolerances: Mapping[str, float]
    batch_size: int
    threads: int
    where: str
    samples: str

    def facts(self, model_dir: Path) -> dict[str, Any]:
        return {
            "archive": archive_of(model_dir), "where": self.where, "torch": str(torch.__version__),
            "threads": self.threads, "batch_size": self.batch_size, "wanted": self.wanted,
            "tolerances": self.tolerances, "samples": self.samples,
        }  # fmt: skip

    def __str__(self) -> str:
        return f"{self.threads} thread{'s' * (self.threads != 1)} of {self.where}"


def _attempt(steps: Steps, way: Way, clock: Clock, known: Sequence[wire.Optimized], *, timed: bool = True) -> "Tried":
    """Try all; the drift of those that are known to be applied is not measured again."""
    drifts = {each.name: each.drift for each in known if each.applied and each.drift is not None}
    trial = Trial(steps, way.tolerances, str(way), clock, drifts, timed=timed)
    outcomes = [trial.attempt(name, by_name) for name, by_name in way.wanted.items()]
    return Tried(outcomes, trial.sure, steps.scales)


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
    if handler.device is not None and handler.device.type == "cuda":
        return torch.cuda.get_device_name(handler.device)
    return str(read_processor())


class Tried(msgspec.Struct):
    """The result of a trial; with an error there are no outcomes.

    Attributes:
        sure: the outcomes hold for the next load, too.
        scales: of `int8`; None without.
        refused: why the model is to be rejected.
        not_applied: why no optimisation can be tried.
    """

    outcomes: list[wire.Optimized] = []
    sure: bool = True
    scales: Scales | None = None
    refused: str = ""
    not_applied: str = ""


def _attempt_apart(attempt: Callable[[], Tried], apart: Apart) -> Tried:
    def work() -> bytes:
        try:
            return msgspec.msgpack.encode(attempt())
        except HandlerError as error:
            return msgspec.msgpack.encode(Tried(refused=str(error)))
        except NotApplied as error:
            return msgspec.msgpack.encode(Tried(not_applied=str(error)))

    try:
        tried = msgspec.msgpack.decode(apart(work)(), type=Tried)
    except ChildProcessError as error:
        raise NotApplied(f"the process that tried them died ({error})") from None
    if tried.refused:
        raise HandlerError(tried.refused)
    if tried.not_applied:
        raise NotApplied(tried.not_applied)
    return tried


def _repeat(
    steps: Steps, outcomes: Sequence[wire.Optimized], wanted: Mapping[str, bool], *, took: bool = False
) -> list[wire.Optimized]:
    """Apply what a trial has kept, without checks.

    Args:
        took: whether the trial's seconds are told, too.
    """
    done: list[wire.Optimized] = []
    for outcome in outcomes:
        began, names = time.perf_counter(), list(steps.done)
        try:
            if outcome.applied:
                steps.apply(outcome.name)
        except Exception as error:
            if wanted[outcome.name]:
                raise HandlerError(f"`optimize: {outcome.name}` cannot be done: {in_words(error)}") from error
            steps.start_again(names)
            outcome = msgspec.structs.replace(outcome, applied=False, reason=in_words(error), warning="")
        seconds = time.perf_counter() - began + outcome.seconds * took
        done.append(msgspec.structs.replace(outcome, seconds=seconds, known=not took))
    return done


def _note(outcome: wire.Optimized) -> None:
    """Write to the model's log where an optimisation is not as wanted."""
    if outcome.warning:
        _log.warning("the optimisation %s was asked for: %s", outcome.name, outcome.warning)
    elif not outcome.applied and not outcome.idle:
        level = logging.WARNING if outcome.speed is None else logging.INFO  # slower is no failure
        _log.log(level, "the model is served without the optimisation %s: %s", outcome.name, outcome.reason)
