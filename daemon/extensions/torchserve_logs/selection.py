"""Which metrics are shown on `/metrics`, and which go to TorchServe's log files: its metrics modes and declarations.

    mode          /metrics                               ts_metrics.log, model_metrics.log
    prometheus    all                                    none
    log           none                                   all
    legacy        the three `ts_…` counters              all others
    (none)        all                                    all

The daemon's own metrics, `tsctl_…`, are on `/metrics` in every mode, and in no log file.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from prometheus_client.samples import Sample

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.metrics_file import MetricsFile
from tsctl.daemon.extensions.exposition.text import MetricFamily, SampleLines, Selection, escaped, family, number
from tsctl.daemon.metrics.emitted import label_of, name_of
from tsctl.handlers.wire import Kind

LEGACY = frozenset(
    {"ts_inference_requests_total", "ts_inference_latency_microseconds", "ts_queue_latency_microseconds"}
)
MACHINE = frozenset({
    "CPUUtilization", "MemoryUsed", "MemoryAvailable", "MemoryUtilization", "DiskUsage", "DiskAvailable",
    "DiskUtilization", "GPUUtilization", "GPUMemoryUtilization", "GPUMemoryUsed",
})  # fmt: skip
SERVER = LEGACY | MACHINE | {
    "Requests2XX", "Requests4XX", "Requests5XX", "QueueTime", "WorkerThreadTime", "WorkerLoadTime",
}  # fmt: skip


class TorchServeSelection(Selection):
    """The operator's choice.

    Args:
        mode: `prometheus`, `log`, `legacy`, or None.
        server: the declared metrics of the server, each with the names of its dimensions; None for all.
        models: the names of the metrics of models that are shown; None for all.
        dimensions: the names of the dimensions of the declared metrics of models.
        kinds: the types of all declared metrics.
        machine: whether the machine is measured.
    """

    def __init__(
        self,
        mode: str | None = None,
        server: Mapping[str, Sequence[str]] | None = None,
        models: Collection[str] | None = None,
        kinds: Mapping[str, Kind] | None = None,
        dimensions: Mapping[str, Sequence[str]] | None = None,
        *,
        machine: bool = True,
    ) -> None:
        self._mode = mode
        self._server = server
        self._models = None if models is None else {name_of(name) for name in models}
        self.machine = machine
        self._kinds = kinds or {}
        self._labels = {
            name_of(name): {label_of(each) for each in (*names, "Hostname")}
            for name, names in (dimensions or {}).items()
        }

    def known(self, name: str) -> bool:
        """Return whether a metric exists for this operator: it is declared, or need not be."""
        if name in MACHINE and not self.machine:
            return False
        if name in SERVER:
            return self._server is None or name in self._server
        return self._models is None or name in self._models

    def logged(self, name: str) -> bool:
        """Return whether the values of a metric go to a log file."""
        return self._mode != "prometheus" and (self._mode != "legacy" or name not in LEGACY) and self.known(name)

    def written(self, name: str) -> SampleLines | None:
        """Return what writes a family's lines as TorchServe does: where the operator has chosen a mode."""
        return None if self._mode is None or name.startswith("tsctl_") else _their_lines

    def without_values(self, found: Collection[str]) -> dict[str, Kind]:
        """Return the declared metrics that `/metrics` names although they are not `found`, as TorchServe does."""
        wanted = {name: kind for name, kind in self._kinds.items() if name not in found and self.shows(name)}
        return wanted if self._mode is not None else {}

    def dimensions(self, name: str, labels: Mapping[str, str]) -> Mapping[str, str]:
        """Return the labels of a metric of the server under the declared names, which TorchServe takes by position.

        Without declared names the labels themselves.
        """
        declared = None if self._server is None else self._server.get(name)
        if declared is None or len(declared) != len(labels) or len(set(declared)) != len(labels):
            return labels
        return dict(zip(declared, labels.values(), strict=True))

    def model_labels(self, name: str, labels: dict[str, str]) -> dict[str, str]:
        """Return the labels of a metric of a model: if declared, its dimensions and the host, else all."""
        declared = self._labels.get(name)
        if declared is None:
            return labels
        return {label: value for label, value in labels.items() if label.lstrip("_") in declared}

    def shows(self, name: str) -> bool:
        if name.startswith("tsctl_"):
            return True
        return self._mode != "log" and (self._mode != "legacy" or name in LEGACY) and self.known(name)

    def shown(self, families: Iterable[MetricFamily]) -> Iterator[MetricFamily]:
        """Yield the selected families; those of the server with the declared names of their dimensions."""
        found = set()
        for each in families:
            found.add(each.name)
            if self.shows(each.name):
                if each.name in SERVER:
                    each.rows = [(self.dimensions(each.name, labels), value) for labels, value in each.rows]
                yield each
        for name, kind in self.without_values(found).items():
            yield family(name, kind, f"{name} has no value yet", [])


def models_metrics(file: MetricsFile | None, auto_detect: bool | None) -> Collection[str] | None:
    """Return the names of the models' metrics that count as declared; None for all, declared or not."""
    if auto_detect if auto_detect is not None else file is None:
        return None
    return ("HandlerTime", "PredictionTime") if file is None else {each.name for each in file.model_metrics}


def selection_of(config: Config) -> TorchServeSelection:
    """Return the operator's choice among TorchServe's metrics."""
    file = config.metrics_file
    return TorchServeSelection(
        config.metrics_mode,
        None if file is None else {each.name: each.dimensions for each in file.ts_metrics},
        models_metrics(file, config.model_metrics_auto_detect),
        None if file is None else {each.name: each.kind for each in (*file.ts_metrics, *file.model_metrics)},
        {each.name: each.dimensions for each in config.model_metrics},
        machine=not config.disable_system_metrics,
    )


def _their_lines(samples: Iterable[Sample]) -> list[str]:
    """Return the lines of TorchServe's library: their labels' order, and a comma behind the last."""
    lines = []
    for sample in samples:
        labels = "".join([f'{name}="{escaped(value)}",' for name, value in sample.labels.items()])
        lines.append(f"{sample.name}{{{labels}}} {number(sample.value)}\n")
    return lines
