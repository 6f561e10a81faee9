"""The autoscaling of a version, as a document.

targetQueueMs             the setting: how long requests may wait
minWorkers, maxWorkers    the operator's range
predictedWaitMs           how long requests are predicted to wait; null before the first decision
reason                    of the latest decision, in words
blocked                   whether another worker would help and cannot be added
quietSeconds              for how long one worker less would have sufficed; null if it would not
lastChange                by the rule: `at`, seconds since the epoch, `before`, `after`, `reason`; null for none
takenAwayAfter            after so many quiet seconds one is taken away
"""

import time
from typing import Any

from tsctl.daemon.extensions.scaling.autoscaler import Autoscaler
from tsctl.daemon.extensions.scaling.rule import quiet_time
from tsctl.daemon.models.version import ModelVersion


def autoscaling_of(model: ModelVersion, scaler: Autoscaler | None) -> dict[str, Any] | None:
    """Return the present state of a version's autoscaling; None if it has no target.

    Args:
        scaler: the version's; None before the first look.
    """
    target = model.settings.target_queue
    if not target:
        return None
    now = model.clock.now()
    decision = None if scaler is None else scaler.decision
    quiet_since = None if scaler is None else scaler.quiet_since
    return {
        "targetQueueMs": round(target * 1000, 3),
        "minWorkers": model.min_workers,
        "maxWorkers": model.max_workers,
        "predictedWaitMs": None if decision is None else round(decision.wait * 1000, 3),
        "reason": "" if decision is None else decision.reason,
        "blocked": decision is not None and decision.blocked,
        "quietSeconds": None if quiet_since is None else round(now - quiet_since, 1),
        "lastChange": _last_change(scaler, now),
        "takenAwayAfter": quiet_time(() if scaler is None else tuple(scaler.history), now),
    }


def _last_change(scaler: Autoscaler | None, now: float) -> dict[str, Any] | None:
    if scaler is None or not scaler.history:
        return None
    change = scaler.history[-1]
    at = round(time.time() - (now - change.at), 3)
    return {"at": at, "before": change.before, "after": change.after, "reason": change.reason}
