"""The residence of all versions as a service of the daemon."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tsctl.daemon.core.machine.memory import memory_of
from tsctl.daemon.extension import Kernel, MetricRow, Service
from tsctl.daemon.extensions.residency.document import residence_document
from tsctl.daemon.extensions.residency.metrics import residency_families
from tsctl.daemon.extensions.residency.residence import residence_of
from tsctl.daemon.extensions.residency.residency import Residency, limits_of
from tsctl.daemon.metrics.exposition import MetricFamily
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.version import ModelVersion


def service_of(kernel: Kernel, metrics: Sequence[MetricRow]) -> "ResidencyService":
    """Return the service of a daemon."""
    limits = limits_of(kernel.config.models_memory, len(kernel.gpus.cards))
    residency = Residency(kernel.registrar.live, kernel.clock, limits)
    if kernel.templates is not None:
        residency.templates, residency.meter = kernel.templates, memory_of
    return ResidencyService(kernel.registry, residency, metrics)


class KeptLoad(msgspec.Struct):
    """The costs of a version's last load, as in `Residence`: the snapshot keeps them."""

    seconds: float
    memory: dict[str, int]


class ResidencyService(Service):
    """The service.

    Args:
        registry: the versions that are shown, and whose loads are remembered.
        residency: loads and unloads all versions.
        metrics: the rows of its metrics.
    """

    measures = True

    def __init__(self, registry: Registry, residency: Residency, metrics: Sequence[MetricRow] = ()) -> None:
        self._metrics, self._registry, self._residency = metrics, registry, residency
        self._before: Mapping[str, Mapping[str, KeptLoad]] = {}

    def attach(self, model: ModelVersion) -> None:
        self._residency.attach(model)
        before = self._before.get(model.name, {}).get(model.version)
        if before is not None and model.at_startup:
            residence_of(model).recall(before.seconds, before.memory)

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        return {"residence": residence_document(model)}

    def live(self, model: ModelVersion) -> Mapping[str, Any]:
        return self.describe(model)

    def overview(self) -> Mapping[str, Any]:
        limits = self._residency.limits
        used = self._residency.used() if limits else {}
        return {"memory": {"budget": dict(limits), "used": {device: used.get(device, 0) for device in limits}}}

    def families(self) -> Iterable[MetricFamily]:
        return residency_families(self._metrics, self._registry)

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
        try:
            self._before = msgspec.convert(kept, dict[str, dict[str, KeptLoad]])
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
