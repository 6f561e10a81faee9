"""What became of a version's optimisations, and its trial, as JSON. The trial:

state       of `TrialState`: off, pending, running, taking over, chosen, nothing faster, failed
asked       whether `optimize: auto` was said
sets        to compare, each in one word
text        the obstacle, the event it waits for, its step, its result or its failure: a sentence
chosen      the names that the trial has chosen, beside the handler's defaults
at          when the last trial ended, or began, in seconds since the epoch; null before the first
attempts    trials that have begun
rows        of the sets that were compared, with the keys of `tsctl optimize --json`, and `gain` and `sure`
"""

import math
from typing import Any

import msgspec

from tsctl.daemon.extensions.optimizing.auto import AutoOptimization
from tsctl.daemon.extensions.optimizing.state import TrialState
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Optimized


def optimized_of(model: ModelVersion) -> list[dict[str, Any]]:
    """Return the outcome of each optimisation, from the youngest worker that has loaded the model."""
    reports = [worker.report.optimized for worker in model.pool.workers if worker.report and worker.report.optimized]
    return [
        {
            "name": each.name,
            "applied": each.applied,
            "drift": each.drift if each.drift is None or math.isfinite(each.drift) else None,
            **({} if each.agreement is None else {"agreement": round(each.agreement, 4)}),
            "seconds": round(each.seconds, 3),
            **({"known": True} if each.known else {}),
            **_speed(each),
            **({"reason": each.reason} if each.reason else {}),
            **({"warning": each.warning} if each.warning else {}),
        }
        for each in (reports[-1] if reports else ())
    ]


def _speed(outcome: Optimized) -> dict[str, Any]:
    """Return how many times faster a batch is, and its milliseconds; nothing if that was not measured."""
    if outcome.speed is None or not outcome.speed[2]:
        return {}
    rows, without, having = outcome.speed
    times = {"rows": rows, "withoutMs": round(without * 1000, 3), "withMs": round(having * 1000, 3)}
    return {"gain": round(without / having, 3), "batch": times}


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
