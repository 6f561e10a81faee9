"""TorchServe's metrics as lines of ts_metrics.log and model_metrics.log, one for each value."""

import socket
import time
from collections.abc import Callable, Mapping

from tsctl.daemon.extensions.torchserve_logs.lines import PrintedMetric, dimensions_text, metric_line
from tsctl.daemon.metrics.torchserve.selection import Selection

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
        selection: Selection,
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
