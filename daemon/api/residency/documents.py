"""A version's residence in memory as a document, `tsctl.residence` of a description.

state, since, why           as in models/residency/state.py; seconds since the epoch; the reason of the last change
onDemand, held              whether requests load the version; whether an operator has unloaded it
loads, unloads              how often, by reason: request, startup, operator; idle, room, operator
loadSeconds                 how long the last load took; null before the first
memory                      bytes by device, as last measured while the version was loaded; empty before
template                    bytes that its template keeps while the version is unloaded
"""

from typing import Any

from daemon.models.version import ModelVersion


def residence_of(model: ModelVersion) -> dict[str, Any]:
    """Return the document of a version."""
    residence = model.residence
    return {
        "state": residence.state.value,
        "since": round(residence.since, 3),
        "why": residence.why,
        "onDemand": residence.on_demand,
        "held": model.request.held,
        "loads": dict(sorted(residence.loads.items())),
        "unloads": dict(sorted(residence.unloads.items())),
        "loadSeconds": None if residence.load_seconds is None else round(residence.load_seconds, 3),
        "memory": dict(residence.memory),
        "template": residence.warm,
    }
