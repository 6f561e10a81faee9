"""`MetricsStore` and `Metric`: TorchServe's older metrics, which are collected and sent by `emit_metrics`.

`context.metrics` is a MetricsCache instead (see handlers/sdk/metrics.py); users' tests create a MetricsStore.
"""

import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tsctl.handlers.sdk.metrics import UNITS, CachingMetric, Dimension, MetricTypes


class Metric:
    """One value with its labels. `update` and `reset` report immediately, as a counter."""

    def __init__(
        self,
        name: str,
        value: float,
        unit: str,
        dimensions: Sequence[Dimension],
        request_id: str | None = None,
        metric_method: str | None = None,
    ) -> None:
        self.name = name
        self.value = value
        self.unit = UNITS.get(unit, unit)
        self.dimensions = list(dimensions)
        self.dimension_names = [each.name for each in dimensions]
        self.dimension_values = [each.value for each in dimensions]
        self.metric_type = MetricTypes.COUNTER
        self.metric_method = metric_method
        self.request_id = request_id
        self._reported = CachingMetric(name, unit, self.dimension_names, self.metric_type, "")

    def update(self, value: float) -> None:
        self._reported.add_or_update(value, self.dimension_values, self.request_id or "")

    def reset(self) -> None:
        self.update(0)

    def __str__(self) -> str:
        dimensions = ",".join(map(str, self.dimensions))
        tail = ",".join(filter(None, (f"#hostname:{socket.gethostname()}", str(int(time.time())), self.request_id)))
        return f"{self.name}.{self.unit}:{self.value}|#{dimensions}|{tail}"

    def to_dict(self) -> dict[str, Any]:
        return {
            "MetricName": self.name,
            "Value": self.value,
            "Unit": self.unit,
            "Dimensions": self.dimensions,
            "Timestamp": int(time.time()),
            "HostName": socket.gethostname(),
            "RequestId": self.request_id,
        }


class MetricsStore:
    """Collects metrics: in `store` as a list, in `cache` by name, unit, request and labels."""

    def __init__(self, request_ids: Any, model_name: str) -> None:
        self.request_ids = request_ids
        self.model_name = model_name
        self.store: list[Metric] = []
        self.cache: dict[str, Metric] = {}

    def add_metric(
        self, name: str, value: float, unit: str, idx: Any = None, dimensions: Sequence[Dimension] | None = None
    ) -> None:
        """Collect a value; a second value of the same metric is reported immediately."""
        self._add(name, value, self._request_of(idx), unit, dimensions)

    def add_counter(
        self, name: str, value: float, idx: Any = None, dimensions: Sequence[Dimension] | None = None
    ) -> None:
        self._add(name, value, self._request_of(idx), "count", dimensions, "counter")

    def add_time(
        self, name: str, value: float, idx: Any = None, unit: str = "ms", dimensions: Sequence[Dimension] | None = None
    ) -> None:
        """Collect a duration in `ms` or `s`.

        Raises:
            ValueError: the unit is another.
        """
        if unit not in ("ms", "s"):
            raise ValueError(f"the unit of a time metric is ms or s, not {unit}")
        self._add(name, value, self._request_of(idx), unit, dimensions)

    def add_size(
        self, name: str, value: float, idx: Any = None, unit: str = "MB", dimensions: Sequence[Dimension] | None = None
    ) -> None:
        """Collect a size in `MB`, `kB`, `GB` or `B`.

        Raises:
            ValueError: the unit is another.
        """
        if unit not in ("MB", "kB", "GB", "B"):
            raise ValueError(f"the unit of a size metric is MB, kB, GB or B, not {unit}")
        self._add(name, value, self._request_of(idx), unit, dimensions)

    def add_percent(
        self, name: str, value: float, idx: Any = None, dimensions: Sequence[Dimension] | None = None
    ) -> None:
        self._add(name, value, self._request_of(idx), "percent", dimensions)

    def add_error(self, name: str, value: Any, dimensions: Sequence[Dimension] | None = None) -> None:
        self._add(name, value, None, "", dimensions)

    def _request_of(self, idx: Any) -> Any:
        """Return the request id of a row; for an unknown row, the ids of all rows."""
        if not isinstance(self.request_ids, Mapping):
            return self.request_ids
        return self.request_ids[idx] if idx in self.request_ids else ",".join(self.request_ids.values())

    def _add(
        self,
        name: str,
        value: float,
        request_id: Any,
        unit: str,
        dimensions: Sequence[Dimension] | None,
        method: str | None = None,
    ) -> None:
        level = "Error" if request_id is None else "Model"
        model = [] if request_id is None else [Dimension("ModelName", self.model_name)]
        labels = [*(dimensions or ()), *model, Dimension("Level", level)]
        key = "-".join([name, unit, str(request_id), *map(str, labels)])
        if key in self.cache:
            self.cache[key].update(value)
            return
        metric = Metric(name, value, unit, labels, None if request_id is None else str(request_id), method)
        self.cache[key] = metric
        self.store.append(metric)


def emit_metrics(metrics: Iterable[Metric]) -> None:
    """Print collected metrics into the model's log."""
    for metric in metrics or ():
        print(f"[METRICS]{metric}", flush=True)  # noqa: T201
