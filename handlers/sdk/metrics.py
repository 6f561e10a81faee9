"""A handler's metrics: `context.metrics`.

The calls are those of TorchServe 0.12 (ts/metrics). Each update is kept for the daemon, which shows the metric on
`/metrics` (handlers/sdk/pending_metrics.py), and prints one line in TorchServe's format to the model's log:

    Name.Unit:value|#Dimension:value,…|#hostname:host,timestamp,request-id
"""

import contextlib
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from tsctl.handlers.sdk.pending_metrics import PendingMetrics
from tsctl.handlers.texts.encodable import class_of, text_of

UNITS = {
    "ms": "Milliseconds", "s": "Seconds", "percent": "Percent", "count": "Count", "MB": "Megabytes",
    "GB": "Gigabytes", "kB": "Kilobytes", "B": "Bytes", "": "unit",
}  # fmt: skip


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
    """A named metric. A counter sums values, a gauge keeps the last value, a histogram every value.

    A value that does not fit is dropped with a line in the model's log: measuring never fails a prediction.
    """

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
        self.unit = UNITS.get(unit, unit)
        self.dimension_names = list(dimension_names)
        self.metric_type = metric_type
        self._model_name = model_name
        self._tally = tally if tally is not None else PendingMetrics()
        self._hostname = socket.gethostname()

    def add_or_update(self, value: float, dimension_values: Sequence[str] = (), request_id: str = "") -> None:
        """Report a value, with one value for each dimension; a counter's value is at least 0."""
        try:
            self._check_and_report(value, dimension_values, request_id)
        except Exception as error:  # noqa: BLE001 - of the objects, or of stdout, which the handler may have closed
            with contextlib.suppress(Exception):
                self._drop(text_of(value), f"{class_of(error)}: {text_of(error)}")

    def _check_and_report(self, value: float, dimension_values: Sequence[str], request_id: str) -> None:
        if len(dimension_values) != len(self.dimension_names):
            names = ", ".join(self.dimension_names)
            self._drop(value, f"its dimensions are ({names}), not {list(dimension_values)}")
        elif self.metric_type is MetricTypes.COUNTER and value < 0:
            self._drop(value, "a counter cannot fall")
        else:
            self._report(value, list(zip(self.dimension_names, dimension_values, strict=True)), request_id)

    def update(self, value: float, request_id: str = "", dimensions: Sequence[Dimension] = ()) -> None:
        """Report a value with these dimensions, which replace the metric's own."""
        self.dimension_names = [each.name for each in dimensions]
        self.add_or_update(value, [each.value for each in dimensions], request_id)

    def _report(self, value: float, pairs: Sequence[tuple[str, str]], request_id: str) -> None:
        self._tally.add(self.metric_type.value, self.metric_name, self.unit, pairs, value)
        dimensions = ",".join(f"{name}:{content}" for name, content in pairs)
        kind = self.metric_type.name
        tail = ",".join(filter(None, (f"#hostname:{self._hostname}", str(int(time.time())), request_id)))
        print(f"[METRICS]{self.metric_name}.{self.unit}:{value}|#{dimensions}|#type:{kind}|{tail}", flush=True)  # noqa: T201

    def _drop(self, value: object, why: str) -> None:
        print(f"metric `{text_of(self.metric_name)}`: {why}; the value {value} is dropped", flush=True)  # noqa: T201


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
        self._declared: set[CachingMetric] = set()

    def declare(self, metrics: Iterable[tuple[str, str, str, Sequence[str]]]) -> None:
        """Declare the operator's metrics, each given as its type, name, unit and dimensions."""
        for kind, name, unit, dimensions in metrics:
            self._declared.add(self.add_metric_to_cache(name, unit, dimensions, MetricTypes(kind)))

    def add_metric_to_cache(
        self,
        metric_name: str,
        unit: str,
        dimension_names: Sequence[str] = (),
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> CachingMetric:
        """Declare a metric, which replaces one of the same name and type.

        Raises:
            TypeError: an argument has another type.
        """
        self._check(metric_name, metric_type)
        if not isinstance(unit, str):
            raise TypeError(f"the unit of the metric `{metric_name}` is a {type(unit).__name__}; pass a str")
        if not isinstance(dimension_names, (list, tuple)):
            was = type(dimension_names).__name__
            raise TypeError(f"the dimension names of the metric `{metric_name}` are a {was}; pass a list of str")
        made = CachingMetric(metric_name, unit, dimension_names, metric_type, self.model_name, self.tally)
        self.cache[metric_type][metric_name] = made
        return made

    def get_metric(self, metric_name: str, metric_type: MetricTypes = MetricTypes.COUNTER) -> CachingMetric:
        """Return a declared metric.

        Raises:
            KeyError: no metric of this name and type was declared.
            TypeError: an argument has another type.
        """
        self._check(metric_name, metric_type)
        known = self.cache[metric_type].get(metric_name)
        if known is None:
            raise KeyError(
                f"no {metric_type.value} `{metric_name}` is declared; declare it with `add_metric_to_cache`,"
                " or under `model_metrics` in the file of `metrics_config`"
            )
        return known

    def _check(self, metric_name: object, metric_type: object) -> None:
        if not isinstance(metric_name, str):
            raise TypeError(f"the name of a metric is a {type(metric_name).__name__}; pass a str")
        if not isinstance(metric_type, MetricTypes):
            raise TypeError(f"the type of the metric `{metric_name}` is {metric_type!r}; pass a member of MetricTypes")

    def add_metric(
        self,
        name: str,
        value: float,
        unit: str,
        idx: int | str | None = None,
        dimensions: Sequence[Dimension] = (),
        metric_type: MetricTypes = MetricTypes.COUNTER,
    ) -> None:
        """Report a value of a metric, declared or not; `idx` is the request's row, None for all rows."""
        labels = {each.name: each.value for each in dimensions}
        labels.setdefault("ModelName", self.model_name)
        labels.setdefault("Level", "Model")
        self._add(name, value, unit, self._request_of(idx), labels, metric_type)

    def _request_of(self, idx: int | str | None) -> str:
        if idx is None:
            return ",".join(self.request_ids.values())
        return self.request_ids.get(idx, "") if isinstance(idx, int) else idx

    def _add(
        self, name: str, value: float, unit: str, request_id: str, labels: Mapping[str, str], metric_type: MetricTypes
    ) -> None:
        known = self.cache[metric_type].get(name)
        if known is None:
            known = self.add_metric_to_cache(name, unit, list(labels), metric_type)
        if labels.keys() == set(known.dimension_names):
            known.add_or_update(value, [labels[each] for each in known.dimension_names], request_id)
        elif known in self._declared:  # its dimensions are the operator's: as in TorchServe, the values by position
            known.add_or_update(value, tuple(labels.values()), request_id)
        else:
            other = CachingMetric(name, unit, list(labels), metric_type, self.model_name, self.tally)
            other.add_or_update(value, tuple(labels.values()), request_id)

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
        labels = {"Level": "Error"} | {each.name: each.value for each in dimensions}
        self._add(name, value, "", "", labels, MetricTypes.COUNTER)
