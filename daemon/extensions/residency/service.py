"""The residence of all versions as others see it: in documents, metrics and the snapshot."""

import math
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from tsctl.daemon.core.machine.processes import memory_of
from tsctl.daemon.declarations import DETAILED, Samples, VersionView
from tsctl.daemon.extension import Kernel
from tsctl.daemon.extensions.residency.residence import Residence, has_work, is_movable, keep_alive_of, residence_of
from tsctl.daemon.extensions.residency.residency import Residency, limits_of
from tsctl.daemon.extensions.residency.state import ResidenceState
from tsctl.daemon.models.version import ModelVersion


def residence_document(model: ModelVersion) -> dict[str, Any]:
    """A version's residence in memory as a document, `tsctl.residence` of a description.

    state, since, why           as in state.py; seconds since the epoch; the reason of the last change
    reason                      its kind: request, startup, operator, idle, room; empty before the first change
    onDemand, held, pinned      whether requests load the version; whether an operator has unloaded it; whether it stays
    lastUsed, unloadsAt         when a request last came or was answered, and when it is unloaded if none comes,
                                in seconds since the epoch; null for never, and while it has work
    keepAlive                   seconds that it stays loaded without work; null for always
    loads, unloads              how often, by reason: request, startup, operator; idle, room, operator
    loadSeconds                 how long the last load took, maybe before a restart; null before the first
    memory                      bytes by device, as last measured while the version was loaded; empty before
    template                    bytes that its template keeps while the version is unloaded
    """
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


class KeptLoad(msgspec.Struct):
    """The costs of a version's last load, as in `Residence`: the snapshot keeps them."""

    seconds: float
    memory: dict[str, int]


class ResidencyService(Residency):
    """The residence of all versions with its fields, metrics, and what the snapshot keeps."""

    measures = True

    def __init__(self, kernel: Kernel) -> None:
        budget, gpus = kernel.config.models_memory, len(kernel.gpus.cards)
        if "gpu=" in (budget or "") and not gpus:
            self.notes = (f"warning: `models_memory` is {budget}, and this daemon uses no GPU: `gpu=` limits nothing",)
        limits = limits_of(budget, gpus)
        super().__init__(kernel.registrar.live, kernel.clock, limits)
        if kernel.templates is not None:
            self.templates, self.meter = kernel.templates, memory_of
        self._registry = kernel.registry
        self._before: Mapping[str, Mapping[str, KeptLoad]] = {}

    def follow(self, model: ModelVersion) -> None:
        made = not isinstance(model.presence, Residence)
        super().follow(model)
        before = self._before.get(model.name, {}).get(model.version)
        if made and before is not None and model.at_startup:
            residence_of(model).recall(before.seconds, before.memory)

    def fields(self, model: ModelVersion, view: VersionView) -> Mapping[str, Any]:
        return {"residence": residence_document(model)} if view in DETAILED else {}

    def document(self) -> Mapping[str, Any]:
        used = self.used() if self.limits else {}
        return {"memory": {"budget": dict(self.limits), "used": {each: used.get(each, 0) for each in self.limits}}}

    def samples(self) -> Samples:
        versions = [((each.name, each.version), residence_of(each)) for each in self._registry]
        yield [(labels, float(each.state is ResidenceState.LOADED)) for labels, each in versions]
        yield [(labels, float(each.memory.get("host", 0))) for labels, each in versions]
        yield [(labels, each.load_seconds or 0.0) for labels, each in versions]
        for name in ("loads", "unloads"):
            counts = ((labels, sorted(getattr(each, name).items())) for labels, each in versions)
            yield [((*labels, reason), count) for labels, each in counts for reason, count in each]

    def keep(self, *, last: bool) -> Mapping[str, Any] | None:
        """Return what the last loads took, by the names of models and versions."""
        del last
        kept: dict[str, dict[str, Any]] = {}
        for model in self._registry:
            residence = residence_of(model)
            if residence.load_seconds is not None and not model.request.ephemeral:
                measured = {"seconds": residence.load_seconds, "memory": dict(residence.memory)}
                kept.setdefault(model.name, {})[model.version] = measured
        return kept or None

    def restore(self, kept: Any) -> None:
        self._before = msgspec.convert(kept, dict[str, dict[str, KeptLoad]])
