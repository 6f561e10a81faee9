"""The outcomes of a version's optimisations, and its trial, as JSON. The trial:

state       of `TrialState`: off, pending, running, taking over, chosen, nothing faster, failed
asked       whether `optimize: auto` was said
sets        to compare, each in one word
text        the obstacle, the event it waits for, its step, its result or its failure: a sentence
chosen      the names that the trial has chosen, beside the handler's defaults
at          when the last trial ended, or began, in seconds since the epoch; null before the first
attempts    trials that have begun
rows        of the sets that were compared, with the keys of `tsctl optimize --json`
"""

import math
from typing import Any

import msgspec

from tsctl.daemon.extensions.optimizing.trial import Trial, TrialState
from tsctl.daemon.models.version import ModelVersion


def optimized_of(model: ModelVersion) -> list[dict[str, Any]]:
    """Return the outcome of each optimisation, from the youngest worker that has loaded the model."""
    reports = [worker.report.optimized for worker in model.pool.workers if worker.report and worker.report.optimized]
    return [
        {
            "name": each.name,
            "applied": each.applied,
            "drift": each.drift if each.drift is None or math.isfinite(each.drift) else None,
            **({} if each.agreement is None else {"agreement": round(each.agreement, 4)}),
            **({} if each.wanted is None else {"agreementWanted": round(each.wanted, 4)}),
            **({"agreementInputs": each.inputs} if each.inputs else {}),
            "seconds": round(each.seconds, 3),
            **({"known": True} if each.known else {}),
            **({"reason": each.reason} if each.reason else {}),
        }
        for each in (reports[-1] if reports else ())
    ]


def trial_of(trial: Trial | None) -> dict[str, Any] | None:
    """Return the trial; None if the version is not one that is tried."""
    if trial is None:
        return None
    record = trial.record
    return {
        "state": trial.state.value,
        "asked": trial.asked,
        "sets": [",".join(names) or "default" for names in trial.sets],
        "text": _text(trial),
        "chosen": [] if record is None else list(record.chosen),
        "at": (record.at or None) if record is not None else None,
        "attempts": 0 if record is None else record.attempts,
        "rows": [] if record is None else [msgspec.to_builtins(row) for row in record.rows],
    }


def _text(trial: Trial) -> str:
    failed = trial.record.text if trial.record is not None else ""
    match trial.state:
        case TrialState.OFF:
            return trial.obstacle
        case TrialState.WAITING:
            waits = f"waits for {trial.waits}" if trial.waits else ""
            return "; ".join(filter(None, (waits, failed)))
        case TrialState.TRYING:
            return trial.progress
    return failed
