"""The caps of all versions, as a service; `batching.cap` in their documents."""

from collections.abc import Iterable, Mapping
from typing import Any

from tsctl.daemon.extension import Kernel, MetricRow, Service
from tsctl.daemon.extensions.fitting.fitting import Fitting, fitting_of
from tsctl.daemon.metrics.exposition import MetricFamily, family
from tsctl.daemon.models.version import ModelVersion


class FittingService(Service):
    """The service.

    Args:
        metric: the row of the batches that did not fit.
    """

    def __init__(self, kernel: Kernel, metric: MetricRow) -> None:
        self._metric = metric
        self._registry = kernel.registry

    def attach(self, model: ModelVersion) -> None:
        Fitting(model)

    def describe(self, model: ModelVersion) -> Mapping[str, Any]:
        fitting = fitting_of(model)
        return {} if fitting is None else {"batching": {"cap": fitting.document()}}

    def families(self) -> Iterable[MetricFamily]:
        row = self._metric
        found = [(model, fitting) for model in self._registry if (fitting := fitting_of(model)) is not None]
        samples = [({"model": model.name, "version": model.version}, fitting.count) for model, fitting in found]
        yield family(row.name, row.kind, row.help, samples)
