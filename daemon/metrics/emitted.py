"""The measurements of one model version's handlers, summed from its workers' deltas.

A worker that dies loses only its unsent measurements. Mistakes of a handler are
corrected or dropped here, so that the text for Prometheus stays valid: invalid characters of names and labels
are replaced, a name keeps its first type, and a version has at most `MOST_SERIES`.
"""

import itertools
import logging
import math
import re
import socket
from collections import Counter
from collections.abc import Sequence

from tsctl.daemon.metrics.histogram import Histogram
from tsctl.handlers.wire import BOUNDS, STAGE_TIME, STAGES, Kind, Measurement

MOST_SERIES = 1000  # of one version; a request id as a dimension would be a series for each request
LONGEST_VALUE = 200  # characters of a label's value
HANDLER_TIME = "HandlerTime"  # TorchServe's, measured by the worker for every handler
# Ours, and TorchServe's own: no handler can add to them.
RESERVED = re.compile(
    r"tsctl_.*|ts_(inference_requests_total|inference_latency_microseconds|queue_latency_microseconds)"
    r"|Requests[245]XX|QueueTime|WorkerThreadTime|WorkerLoadTime|PredictionTime|CPUUtilization"
    r"|Memory(Used|Available|Utilization)|Disk(Usage|Available|Utilization)|GPU(Memory)?Utilization|GPUMemoryUsed"
)
_NAME = re.compile(r"[^a-zA-Z0-9_:]")
_LABEL = re.compile(r"[^a-zA-Z0-9_]")

_hostname = socket.gethostname()
_stamps = itertools.count(1)  # the order of updates in all versions: between gauges of one name, the last counts
_log = logging.getLogger("tsctl.daemon.metrics")


def name_of(name: str) -> str:
    """Return the name of a handler's metric as Prometheus takes it; empty for an empty one."""
    name = _NAME.sub("_", name)
    return f"_{name}" if name[:1].isdigit() else name


def label_of(dimension: str) -> str:
    """Return the name of a dimension with the characters that Prometheus takes, and without a `_` in front."""
    return _LABEL.sub("_", dimension).lstrip("_")


class Series:
    """One line, or a histogram's lines, in the text for Prometheus.

    Attributes:
        kind: `counter`, `gauge` or `histogram`.
        value: of a counter or a gauge.
        stamp: rises with each update, over all series.
    """

    __slots__ = ("histogram", "kind", "labels", "name", "stamp", "unit", "value")

    def __init__(self, kind: str, name: str, unit: str, labels: dict[str, str]) -> None:
        self.kind = kind
        self.name = name
        self.unit = unit
        self.labels = labels
        self.value = 0.0
        self.stamp = 0
        self.histogram = Histogram(BOUNDS if kind == "histogram" else ())

    @property
    def total(self) -> tuple[float, list[int]]:
        """The value and the buckets of all measurements so far."""
        return (self.histogram.sum, list(self.histogram.counts)) if self.kind == "histogram" else (self.value, [])

    def update(self, value: float, buckets: Sequence[int]) -> None:
        """Add a delta: see `tsctl.handlers.wire.Measurement`."""
        self.stamp = next(_stamps)
        if self.kind == "histogram":
            self.histogram.add(buckets, value)
        else:
            self.value = value if self.kind == "gauge" else self.value + value


class Emitted:
    """The series of one version.

    Attributes:
        dropped: the number of measurements that are not shown, by reason: `name` (reserved or empty), `type` (the name
            has another), `limit` (too many series).
        stages: the seconds of each stage of built-in handlers' batches.
        latest: a worker's measurements of the batch that returns next.
    """

    def __init__(self, model_name: str, model_version: str) -> None:
        self.dropped: Counter[str] = Counter()
        self.stages = {stage: Histogram(BOUNDS) for stage in STAGES}
        self._model = (model_name, model_version)
        self._known: dict[tuple[Kind, str, tuple[tuple[str, str], ...]], Series] = {}
        self._kinds: dict[str, str] = {}  # name → its type
        self._told: set[str] = set()  # names that the log has mentioned
        self.latest: Sequence[Measurement] = ()

    @property
    def series(self) -> list[Series]:
        return [each for each in self._known.values() if self._kinds.get(each.name, each.kind) == each.kind]

    @property
    def handler_time(self) -> float | None:
        """The milliseconds of the last batch in the handler; None before the first."""
        found = self._known.get(("gauge", HANDLER_TIME, (("ModelName", self._model[0]), ("Level", "Model"))))
        return None if found is None else found.value

    @property
    def counters(self) -> list[Series]:
        """The series that stay when the version is unregistered."""
        return [each for each in self.series if each.kind == "counter"]

    @property
    def totals(self) -> list[Measurement]:
        """The sums of all counters and histograms, as one worker would report them; an upgrade hands them over.

        One that has passed the largest float is left out: JSON has no such number.
        """
        return [
            Measurement(kind, name, each.unit, labels, *each.total)
            for (kind, name, labels), each in self._known.items()
            if kind != "gauge" and math.isfinite(each.total[0])
        ]

    def add_measurements(self, measurements: Sequence[Measurement]) -> None:
        """Add a worker's measurements, which it reports before its batch returns."""
        for measured in measurements:
            if measured.name == STAGE_TIME and self._take_stage(measured):
                continue
            series = self._known.get((measured.kind, measured.name, measured.labels))
            if series is None:
                series = self._add(measured)
            if series is not None:
                series.update(measured.value, measured.buckets)
        self.latest = measurements

    def continue_from(self, other: "Emitted") -> None:
        """Take over the counters of the same version, registered earlier; a type is free to change."""
        self._known.update((key, each) for key, each in other._known.items() if each.kind == "counter")
        self.dropped.update(other.dropped)

    def keep_counters(self) -> None:
        """Forget all but the counters."""
        self._known = {key: each for key, each in self._known.items() if each.kind == "counter"}

    def _take_stage(self, measured: Measurement) -> bool:
        """Add the times of a stage; return False for what only has its name."""
        stage = self.stages.get(measured.labels[0][1]) if len(measured.labels) == 1 else None
        if stage is None or len(measured.buckets) != len(stage.counts):
            return False
        stage.add(measured.buckets, measured.value)
        return True

    def _add(self, measured: Measurement) -> Series | None:
        name = name_of(measured.name)
        if not name or RESERVED.fullmatch(name):
            self._drop("name", name, f"`{measured.name}` is not a name for a handler's metric")
            return None
        kind = self._kinds.get(name, measured.kind)
        if kind != measured.kind:
            self._drop("type", name, f"`{name}` is a {kind}, and cannot be a {measured.kind} too")
            return None
        if len(self._known) >= MOST_SERIES:
            self._drop("limit", "", f"there are {MOST_SERIES} series already; is a dimension of `{name}` unbounded?")
            return None
        self._kinds[name] = kind
        series = Series(kind, name, measured.unit, self._labels(name, measured))
        self._known[measured.kind, measured.name, measured.labels] = series
        return series

    def _labels(self, name: str, measured: Measurement) -> dict[str, str]:
        """Return the labels: the measurement's own dimensions, then the host and the model, unless given."""
        labels: dict[str, str] = {}
        for dimension, value in measured.labels:
            label = label_of(dimension) or "_"
            label = f"_{label}" if label[0].isdigit() else label
            if label == "le" and measured.kind == "histogram":
                label = "exported_le"  # a bucket's own label
            labels[label] = value[:LONGEST_VALUE]
        labels.setdefault("Hostname", _hostname)
        labels.setdefault("ModelName", self._model[0])
        if name != HANDLER_TIME:  # TorchServe has one for all versions
            labels.setdefault("ModelVersion", self._model[1])
        return labels

    def _drop(self, reason: str, name: str, sentence: str) -> None:
        self.dropped[reason] += 1
        if name not in self._told and len(self._told) < MOST_SERIES:
            self._told.add(name)
            _log.warning("metrics of the handler of %s/%s: %s; what it reports is dropped", *self._model, sentence)
