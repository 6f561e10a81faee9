"""The autoscaling of all versions as a service of the daemon."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tsctl.daemon.extension import Kernel, MetricRow, Service
from tsctl.daemon.extensions.scaling.autoscaler import Autoscaler
from tsctl.daemon.extensions.scaling.autoscaling import Autoscaling, carry_over
from tsctl.daemon.extensions.scaling.document import autoscaling_of
from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.models.version import ModelVersion


class ScalingService(Service):
    """The service.

    Args:
        metrics: the rows of its metrics.
    """

    def __init__(self, kernel: Kernel, metrics: Sequence[MetricRow]) -> None:
        self._metrics = metrics
        self._registry = kernel.registry
        self._autoscaling = Autoscaling(kernel.registry, kernel.clock, kernel.gpus.now)

    def begin(self) -> None:
        self._autoscaling.begin()

    def close(self) -> None:
        self._autoscaling.close()

    def replacing(self, old: ModelVersion, new: ModelVersion) -> None:
        carry_over(old, new)

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        return {"autoscaling": autoscaling_of(model, self._autoscaling.of(model))}

    def live(self, model: ModelVersion) -> Mapping[str, Any]:
        return self.describe(model)

    def families(self) -> Iterable[MetricFamily]:
        scaled = [(model, _values(model, self._autoscaling.of(model))) for model in self._registry]
        for index, row in enumerate(self._metrics):
            samples = [
                ({"model": model.name, "version": model.version}, values[index]) for model, values in scaled if values
            ]
            yield family(row.name, row.kind, row.help, samples)


def _values(model: ModelVersion, scaler: Autoscaler | None) -> tuple[float, ...]:
    """Return a version's values of the metrics, in the order of their rows; none without a target."""
    if not model.settings.target_queue:
        return ()
    predicted = 0.0 if scaler is None or scaler.decision is None else scaler.decision.wait
    return model.settings.target_queue, predicted, model.min_workers, model.max_workers
