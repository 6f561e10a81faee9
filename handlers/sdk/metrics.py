"""A handler's metrics: `context.metrics`.

The calls are those of TorchServe 0.12 (ts/metrics). Each update is kept for the daemon, which shows the metric on
`/metrics` (handlers/sdk/pending_metrics.py), and prints one line in TorchServe's format to the model's log:

    Name.Unit:value|#Dimension:value,…|#hostname:host,timestamp,request-id
"""

import socket
import time
from collections.abc import Mapping, Sequence
from enum import Enum

from handlers.sdk.pending_metrics import PendingMetrics


class MetricTypes(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Dimension:
    """A label and its value."""

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value

    def __str__(self) -> str:
        return f"{self.name}:{self.value}"


class CachingMetric:
    """A named metric. A counter sums values, a gauge keeps the last value, a histogram every value."""

    def __init__(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Sequence[str],
        metric_type: MetricTypes,
        model_name: str,
        tally: PendingMetrics | None = None,
    ) -> None:
        self.metric_name = metric_name
        self.unit = unit
        self.dimension_names = list(dimension_names)
        self.metric_type = metric_type
        self._model_name = model_name
        self._tally = tally if tally is not None else PendingMetrics()
        self._hostname = socket.gethostname()

    def add_or_update(self, value: float, dimension_values: Sequence[str], request_id: str = "") -> None:
        """Report a value.

        Raises:
            ValueError: the number of values differs from the number of dimensions.
        """
        if len(dimension_values) != len(self.dimension_names):
            names = ", ".join(self.dimension_names)
            raise ValueError(f"metric {self.metric_name} has the dimensions ({names}), not {list(dimension_values)}")
        pairs = list(zip(self.dimension_names, dimension_values, strict=True))
        self._tally.add(self.metric_type.value, self.metric_name, self.unit, pairs, value)
        dimensions = ",".join(f"{name}:{content}" for name, content in pairs)
        kind = self.metric_type.name
        tail = ",".join(filter(None, (f"#hostname:{self._hostname}", str(int(time.time())), request_id)))
        print(f"[METRICS]{self.metric_name}.{self.unit}:{value}|#{dimensions}|#type:{kind}|{tail}", flush=True)  # noqa: T201

    update = add_or_update


class MetricsCache:
    """All metrics of one worker, by type and name.

    Attributes:
        tally: measurements not yet sent to the daemon.
    """

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self.tally = PendingMetrics()
        self.request_ids: Mapping[int, str] = {}
        self.cache: dict[MetricTypes, dict[str, CachingMetric]] = {kind: {} for kind in MetricTypes}

    def add_metric_to_cache(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Sequence[str] = (),
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> CachingMetric:
        """Declare a metric, or return the declared one. Other dimensions than before replace the metric."""
        known = self.cache[metric_type].get(metric_name)
        if known is None or known.dimension_names != list(dimension_names):
            known = CachingMetric(metric_name, unit, dimension_names, metric_type, self.model_name, self.tally)
            self.cache[metric_type][metric_name] = known
        return known

    def get_metric(self, metric_name: str, metric_type: MetricTypes = MetricTypes.COUNTER) -> CachingMetric:
        """Return a declared metric.

        Raises:
            KeyError: no metric of this name and type was declared.
        """
        return self.cache[metric_type][metric_name]

    def add_metric(
        self,
        name: str,
        value: float,
        unit: str,
        idx: int | str | None = None,
        dimensions: Sequence[Dimension] = (),
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> None:
        """Report a value of a metric, declared or not; `idx` is the request's row."""
        labels = {"ModelName": self.model_name, "Level": "Model"} | {each.name: each.value for each in dimensions}
        metric = self.add_metric_to_cache(name, unit, tuple(labels), metric_type)
        request_id = self.request_ids.get(idx, "") if isinstance(idx, int) else idx or ""
        metric.add_or_update(value, tuple(labels.values()), request_id)

    def add_counter(
        self, name: str, value: float, idx: int | None = None, dimensions: Sequence[Dimension] = ()
    ) -> None:
        self.add_metric(name, value, "count", idx, dimensions, MetricTypes.COUNTER)

    def add_time(
        self,
        name: str,
        value: float,
        idx: int | None = None,
        unit: str = "ms",
        dimensions: Sequence[Dimension] = (),
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> None:
        """Report a duration in `ms` or `s`.

        Raises:
            ValueError: the unit is another.
        """
        if unit not in ("ms", "s"):
            raise ValueError(f"the unit of a time metric is ms or s, not {unit}")
        self.add_metric(name, value, unit, idx, dimensions, metric_type)

    def add_size(
        self,
        name: str,
        value: float,
        idx: int | None = None,
        unit: str = "MB",
        dimensions: Sequence[Dimension] = (),
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> None:
        """Report a size in `MB`, `kB`, `GB` or `B`.

        Raises:
            ValueError: the unit is another.
        """
        if unit not in ("MB", "kB", "GB", "B"):
            raise ValueError(f"the unit of a size metric is MB, kB, GB or B, not {unit}")
        self.add_metric(name, value, unit, idx, dimensions, metric_type)

    def add_percent(
        self,
        name: str,
        value: float,
        idx: int | None = None,
        dimensions: Sequence[Dimension] = (),
        metric_type: MetricTypes = MetricTypes.GAUGE,
    ) -> None:
        self.add_metric(name, value, "percent", idx, dimensions, metric_type)

    def add_error(self, name: str, value: float, dimensions: Sequence[Dimension] = ()) -> None:
        self.add_metric(name, value, "", None, dimensions, MetricTypes.COUNTER)
