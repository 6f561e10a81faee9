"""A version's residence in memory as a document, `tsctl.residence` of a description.

state, since, why           as in state.py; seconds since the epoch; the reason of the last change
reason                      its kind: request, startup, operator, idle, room; empty before the first change
onDemand, held, pinned      whether requests load the version; whether an operator has unloaded it; whether it stays
lastUsed, unloadsAt         when a request last came or was answered, and when the version is unloaded if none comes,
                            seconds since the epoch; null for never, and while it has work
keepAlive                   seconds that it stays loaded without work; null for always
loads, unloads              how often, by reason: request, startup, operator; idle, room, operator
loadSeconds                 how long the last load took, maybe before a restart; null before the first
memory                      bytes by device, as last measured while the version was loaded; empty before
template                    bytes that its template keeps while the version is unloaded
"""

import math
import time
from typing import Any

from tsctl.daemon.extensions.residency.residence import residence_of
from tsctl.daemon.extensions.residency.state import ResidenceState
from tsctl.daemon.extensions.residency.use import has_work, is_movable, keep_alive_of
from tsctl.daemon.models.version import ModelVersion


def residence_document(model: ModelVersion) -> dict[str, Any]:
    """Return the document of a version."""
    residence, now, epoch = residence_of(model), model.clock.now(), time.time()
    used, keep_alive = model.path.used_at, keep_alive_of(model)
    goes = residence.state is ResidenceState.LOADED and is_movable(model) and not has_work(model)
    unloads = max(used, residence.loaded_at) + keep_alive if goes else math.inf
    return {
        "state": residence.state.value,
        "since": round(residence.since, 3),
        "why": residence.why,
        "reason": residence.kind,
        "onDemand": residence.on_demand,
        "held": model.request.held,
        "pinned": model.settings.pinned,
        "lastUsed": _moment(used - now + epoch),
        "unloadsAt": _moment(unloads - now + epoch),
        "keepAlive": _moment(keep_alive),
        "loads": dict(sorted(residence.loads.items())),
        "unloads": dict(sorted(residence.unloads.items())),
        "loadSeconds": None if residence.load_seconds is None else round(residence.load_seconds, 3),
        "memory": dict(residence.memory),
        "template": residence.warm,
    }


def _moment(seconds: float) -> float | None:
    return round(seconds, 3) if math.isfinite(seconds) else None
