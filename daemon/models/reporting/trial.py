"""The trial of a version's optimisations, as JSON.

state       of `TrialState`: off, pending, running, taking over, chosen, nothing faster, failed
asked       whether `optimize: auto` was said
sets        to compare, each in one word
text        the obstacle, the event it waits for, its step, its result or its failure: a sentence
chosen      the names that the trial has chosen, beside the handler's defaults
at          when the last trial ended, or began, in seconds since the epoch; null before the first
attempts    trials that have begun
rows        of the sets that were compared, with the keys of `tsctl optimize --json`, and `gain` and `sure`
"""

from typing import Any

import msgspec

from tsctl.daemon.models.optimizing.auto import AutoOptimization
from tsctl.daemon.models.optimizing.state import TrialState


def trial_of(auto: AutoOptimization | None) -> dict[str, Any] | None:
    """Return the trial; None if the version is not one that is tried."""
    if auto is None:
        return None
    record = auto.record
    return {
        "state": auto.state.value,
        "asked": auto.asked,
        "sets": [",".join(names) or "default" for names in auto.sets],
        "text": _text(auto),
        "chosen": [] if record is None else list(record.chosen),
        "at": (record.at or None) if record is not None else None,
        "attempts": 0 if record is None else record.attempts,
        "rows": [] if record is None else [msgspec.to_builtins(row) for row in record.rows],
    }


def _text(auto: AutoOptimization) -> str:
    failed = auto.record.text if auto.record is not None else ""
    match auto.state:
        case TrialState.OFF:
            return auto.obstacle
        case TrialState.WAITING:
            waits = f"waits for {auto.waits}" if auto.waits else ""
            return "; ".join(filter(None, (waits, failed)))
        case TrialState.TRYING:
            return auto.progress
    return failed
