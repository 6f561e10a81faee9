"""TorchServe's metrics as lines of ts_metrics.log and model_metrics.log, one for each value."""

import re
import socket
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tsctl.daemon.extensions.torchserve_logs.selection import TorchServeSelection

MARK = "[METRICS]"
_PRINTED = re.compile(
    r"(?:INFO > )?\[METRICS\]\s*([\w\s]+)\.([\w\s]+):([-+0-9.e]+)"
    r"\|#([^|]*)(?:\|#type:[^|,]+)?\|#hostname:([^,]+),[^,]+(?:,(.*))?"
)


class PrintedMetric(NamedTuple):
    """A measurement as a worker has printed it; `dimensions` as text, `request_ids` empty if there are none."""

    name: str
    unit: str
    value: float
    dimensions: str
    hostname: str
    request_ids: str


def parse_printed(line: str) -> PrintedMetric | None:
    """Parse a line of a worker's output; None for any other line."""
    found = _PRINTED.fullmatch(line)
    if found is None:
        return None
    name, unit, value, dimensions, hostname, ids = found.groups()
    try:
        return PrintedMetric(name, unit, float(value), dimensions, hostname, ids or "")
    except ValueError:
        return None


def metric_line(
    name: str, unit: str, value: float, dimensions: str, hostname: str, moment: float, request_ids: str | None = None
) -> str:
    """The lines of ts_metrics.log and model_metrics.log, and those that workers print.

    in a file         Name.Unit:value|#Dimension:value,…|#hostname:host,requestID:id,timestamp:seconds
    from a worker     [METRICS]Name.Unit:value|#Dimension:value,…|#type:GAUGE|#hostname:host,seconds,id

    Args:
        moment: in seconds since the epoch.
        request_ids: of a model's metric, as text; `null` in the line if empty. None for the server's.
    """
    requests = "" if request_ids is None else f",requestID:{request_ids or 'null'}"
    return f"{name}.{unit}:{_number(value)}|#{dimensions}|#hostname:{hostname}{requests},timestamp:{int(moment)}"


def _number(value: float) -> str:
    """Return a number with a decimal point, and without an exponent, which scripts do not expect."""
    text = repr(float(value))
    return f"{value:.9f}" if "e-" in text else f"{value:.1f}" if "e" in text else text


def dimensions_text(labels: Mapping[str, str]) -> str:
    """Return the dimensions as a line has them, without the last one, the name of the host."""
    return ",".join([f"{name}:{value}" for name, value in labels.items()][:-1])


UNITS = {
    "Requests2XX": "Count", "Requests4XX": "Count", "Requests5XX": "Count", "ts_inference_requests_total": "Count",
    "ts_inference_latency_microseconds": "Microseconds", "ts_queue_latency_microseconds": "Microseconds",
    "QueueTime": "Milliseconds", "WorkerThreadTime": "Milliseconds", "WorkerLoadTime": "Milliseconds",
    "CPUUtilization": "Percent", "MemoryUsed": "Megabytes", "MemoryAvailable": "Megabytes",
    "MemoryUtilization": "Percent", "DiskUsage": "Gigabytes", "DiskAvailable": "Gigabytes",
    "DiskUtilization": "Percent", "GPUUtilization": "Percent", "GPUMemoryUtilization": "Percent",
    "GPUMemoryUsed": "Megabytes", "HandlerTime": "ms", "PredictionTime": "ms",
}  # fmt: skip
_hostname = socket.gethostname()


class MetricLog:
    """Writes the lines of the metrics that the operator's selection logs.

    Args:
        server, models: take the lines of ts_metrics.log, and of model_metrics.log.
        units: the declared units.
    """

    def __init__(
        self,
        selection: TorchServeSelection,
        server: Callable[[str], None],
        models: Callable[[str], None],
        units: Mapping[str, str] | None = None,
    ) -> None:
        self._selection = selection
        self._server = server
        self._models = models
        self._units = UNITS | dict(units or {})

    def sent(self, status: int) -> None:
        """Write the line of an answer on any address."""
        group = "2XX" if 200 <= status < 300 else "4XX" if 400 <= status < 500 else "5XX"
        self.of_host(f"Requests{group}", 1)

    def requested(self, model: str, version: str) -> None:
        """Write the line of a request; `version` is `default` if the request named none."""
        self._of_version("ts_inference_requests_total", model, version, 1)

    def waited(self, model: str, version: str, seconds: float) -> None:
        """Write the lines of the time until a worker began a request."""
        self._of_version("ts_queue_latency_microseconds", model, version, seconds * 1e6)
        self.of_host("QueueTime", seconds * 1e3)

    def answered(self, model: str, version: str, seconds: float) -> None:
        """Write the line of the time from a request to its answer."""
        self._of_version("ts_inference_latency_microseconds", model, version, seconds * 1e6)

    def batch_returned(self, model: str, ids: str, inside: float, overhead: float, handler: float | None) -> None:
        """Write the lines of a batch: seconds in the worker, on the way, and in the handler if that is known."""
        labels = {"ModelName": model, "Level": "Model", "Hostname": _hostname}
        if handler is not None:
            self._of_model("HandlerTime", handler, labels, ids)
        self._of_model("PredictionTime", inside * 1e3, labels, ids)
        self.of_host("WorkerThreadTime", overhead * 1e3)

    def printed(self, metric: PrintedMetric) -> None:
        """Write the line of a measurement that a worker has printed."""
        if self._selection.logged(metric.name):
            unit = self._units.get(metric.name, metric.unit)
            self._models(
                metric_line(
                    metric.name, unit, metric.value, metric.dimensions, metric.hostname, time.time(), metric.request_ids
                )
            )

    def of_host(self, name: str, value: float, further: Mapping[str, str] | None = None) -> None:
        """Write a line of the server, with the labels `Level` and `Hostname`; `further` ones come first."""
        self._of_server(name, value, {**(further or {}), "Level": "Host", "Hostname": _hostname})

    def of_gpu(self, name: str, value: float, index: str) -> None:
        self._of_server(name, value, {"Level": "Host", "DeviceId": index, "Hostname": _hostname})

    def _of_version(self, name: str, model: str, version: str, value: float) -> None:
        self._of_server(name, value, {"model_name": model, "model_version": version, "hostname": _hostname})

    def _of_server(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        if self._selection.logged(name):
            dimensions = dimensions_text(self._selection.dimensions(name, labels))
            self._server(metric_line(name, self._units[name], value, dimensions, _hostname, time.time()))

    def _of_model(self, name: str, value: float, labels: Mapping[str, str], ids: str) -> None:
        if self._selection.logged(name):
            dimensions = dimensions_text(labels)
            self._models(metric_line(name, self._units[name], value, dimensions, _hostname, time.time(), ids))
