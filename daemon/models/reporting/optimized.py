"""The outcomes of a model's optimisations, as JSON."""

import math
from collections.abc import Sequence
from typing import Any

from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Optimized


def optimized_of(model: ModelVersion) -> list[dict[str, Any]]:
    """Return the outcome of each optimisation, from the youngest worker that has loaded the model."""
    reports: list[Sequence[Optimized]] = [worker.optimized for worker in model.pool.workers if worker.optimized]
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
