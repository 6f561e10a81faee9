"""The fastest set that can be served with, by the rows of a trial, or of `tsctl optimize`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tsctl.handlers.names import NO_OPTIMIZATION

LEAST_GAIN = 1.02  # over the defaults: less is within the error
MOST_LATER = 3.0  # seconds that a later load may take longer than with the defaults


class TrialRow(msgspec.Struct, kw_only=True, rename="camel"):
    """A set, measured or refused.

    Attributes:
        optimize: the set in one word.
        now: the model is served with this set.
        seconds: of a full batch, beside the shortest one of the set of now; None if the set was refused.
        per_second: requests, in full batches.
        drift: the largest of the applied optimisations; None if none is told.
        agreement: the smallest fraction of best classes that stay the same; None where there are no classes.
        memory: resident bytes of the worker.
        load: seconds until the worker was ready: of a first load, with what is checked and compiled; in a trial those
            of a later load, without what it had to wait for a core.
        outcomes: of each optimisation.
        refused: why there is no such worker; empty if there is.
        missing: why an optimisation of the set was left out; empty if none was.
        gain: how many times as fast as the set of now, measured in turns.
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


class TrialChoice(NamedTuple):
    """The result of a trial.

    Attributes:
        optimize: the chosen set, as in `TrialRow`; empty if the defaults stay.
        sure: the measurements hold; else the trial is to be made again.
        text: the result as a sentence.
    """

    optimize: str
    sure: bool
    text: str


def choose(rows: Sequence[TrialRow], max_memory: int | None, most_later: float = MOST_LATER) -> TrialChoice:
    """Choose the fastest set that was applied as a whole, loads soon, and fits into the memory of a worker.

    Args:
        rows: one is that of now.
        max_memory: as in ModelSettings.
        most_later: seconds that a load may take longer than with the set of now.
    """
    now = next(row for row in rows if row.now)
    others = [row for row in rows if not row.now]
    objections = {row.optimize: _objection(row, now, max_memory, most_later) for row in others}
    able = [row for row in others if not objections[row.optimize]]
    faster = [row for row in able if row.sure and (row.gain or 0.0) >= LEAST_GAIN]
    if faster:
        best = max(faster, key=lambda row: row.gain or 0.0)
        plain = next((row.gain for row in rows if row.optimize == NO_OPTIMIZATION and row.gain), None)
        told = plain is not None and best.optimize != NO_OPTIMIZATION
        beside = f", {(best.gain or 0.0) / (plain or 1.0):.2f} x the plain model" if told else ""
        kept = "" if best.agreement is None else f", best class kept: {best.agreement:.1%}"
        text = f"{best.optimize}: {best.per_second or 0.0:.3g} requests/s, {best.gain:.2f} x the defaults{beside}{kept}"
        return TrialChoice(best.optimize, True, text)
    if any(not row.sure for row in able):
        return TrialChoice("", False, "the machine was too busy to tell which set is faster")
    notes = [f"{row.optimize}: {objections[row.optimize] or f'{row.gain:.2f} x'}" for row in others]
    return TrialChoice("", True, f"nothing is faster than the defaults ({'; '.join(notes)})")


def _objection(row: TrialRow, now: TrialRow, max_memory: int | None, most_later: float) -> str:
    """Return why a set cannot be served with; empty if it can."""
    if row.refused or row.missing or row.gain is None:
        return row.refused or row.missing or "not measured"
    if max_memory is not None and row.memory > max_memory:
        return "a worker would exceed its memory"
    if row.load > now.load + most_later:
        return f"a worker would take {row.load:.1f} s to load, {row.load - now.load:.1f} s more"
    return ""
