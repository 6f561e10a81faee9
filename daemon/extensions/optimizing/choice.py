"""The set to serve with, by the rows of a trial."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from tsctl.handlers.names import NO_OPTIMIZATION

LEAST_GAIN = 1.02  # over the defaults: less is within the error
MOST_LATER = 3.0  # seconds that a later load may take longer than with the defaults


class TrialRow(msgspec.Struct, kw_only=True, rename="camel"):
    """A set that was tried, as in `SetResult` of daemon/extensions/optimizing/measuring/measuring.py."""

    optimize: str
    now: bool
    seconds: float | None = None
    per_second: float | None = None
    drift: float | None = None
    agreement: float | None = None
    memory: int = 0
    load: float = 0.0
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


def choose(rows: Sequence[TrialRow], max_memory: int | None) -> TrialChoice:
    """Choose the fastest set that was applied as a whole, loads soon, and fits into the memory of a worker.

    Args:
        rows: one is that of now, the defaults, and one that of the plain model, `none`.
        max_memory: as in ModelSettings.
    """
    now = next(row for row in rows if row.now)
    others = [row for row in rows if not row.now and row.optimize != NO_OPTIMIZATION]
    able = [row for row in others if not _objection(row, now, max_memory)]
    faster = [row for row in able if row.sure and (row.gain or 0.0) >= LEAST_GAIN]
    if faster:
        best = max(faster, key=lambda row: row.gain or 0.0)
        plain = next((row.gain for row in rows if row.optimize == NO_OPTIMIZATION and row.gain), None)
        beside = "" if plain is None else f", {(best.gain or 0.0) / plain:.2f} x the plain model"
        text = f"{best.optimize}: {best.per_second or 0.0:.3g} requests/s, {best.gain:.2f} x the defaults{beside}"
        return TrialChoice(best.optimize, True, text)
    if any(not row.sure for row in able):
        return TrialChoice("", False, "the machine was too busy to tell which set is faster")
    notes = [f"{row.optimize}: {_objection(row, now, max_memory) or f'{row.gain:.2f} x'}" for row in others]
    return TrialChoice("", True, f"nothing is faster than the defaults ({'; '.join(notes)})")


def _objection(row: TrialRow, now: TrialRow, max_memory: int | None) -> str:
    """Return why a set cannot be served with; empty if it can."""
    if row.refused or row.missing or row.gain is None:
        return row.refused or row.missing or "not measured"
    if max_memory is not None and row.memory > max_memory:
        return "a worker would exceed its memory"
    if row.load > now.load + MOST_LATER:
        return f"a worker would take {row.load:.1f} s to load, {row.load - now.load:.1f} s more"
    return ""
