"""The routes of the protocol, and Triton's metrics, as a service of the daemon."""

from collections.abc import Collection, Iterable
from typing import Any

from tsctl.daemon.api.tensors.metadata import statistics_of
from tsctl.daemon.extension import Kernel, RoutesService
from tsctl.daemon.extensions.oip.repository import repository_routes
from tsctl.daemon.extensions.oip.routes import oip_routes
from tsctl.daemon.metrics.exposition import MetricFamily, family

_PREFIX = "nv_inference_"
# Name after the prefix → the value in the statistics of a version, and what it counts. Times are microseconds.
_METRICS = {
    "request_success": (("success", "count"), "Requests that were answered."),
    "request_failure": (("fail", "count"), "Requests that failed."),
    "count": (("inference_count",), "Requests that ran."),
    "exec_count": (("execution_count",), "Batches that ran."),
    "request_duration_us": (("success", "ns"), "Time of answered requests, in microseconds."),
    "queue_duration_us": (("queue", "ns"), "Time in the queue, in microseconds."),
    "compute_infer_duration_us": (("compute_infer", "ns"), "Time of batches in the workers, in microseconds."),
}
_PENDING = "pending_request_count"


class OipService(RoutesService):
    """The service."""

    def __init__(self, kernel: Kernel) -> None:
        clients = oip_routes(kernel.registry, kernel.ready, kernel.predictions["v2"], kernel.turns)
        super().__init__(clients, repository_routes(kernel.registry, kernel.registrar))
        self._registry = kernel.registry

    def named_families(self, names: Collection[str]) -> Iterable[MetricFamily]:
        """Yield Triton's metrics of each version, if one of them is asked for: they repeat ours under other names."""
        if not any(name.startswith(_PREFIX) for name in names):
            return
        versions = list(self._registry)
        told = [
            ({"model": each.name, "version": each.version}, statistics_of(each, each.clock.now())) for each in versions
        ]
        for name, (path, text) in _METRICS.items():
            yield family(_PREFIX + name, "gauge", text, [(labels, _value(document, path)) for labels, document in told])
        waiting = [({"model": each.name, "version": each.version}, each.waiting) for each in versions]
        yield family(_PREFIX + _PENDING, "gauge", "Requests that wait for a worker.", waiting)


def _value(document: dict[str, Any], path: tuple[str, ...]) -> float:
    if len(path) == 1:
        return float(document[path[0]])
    value: int = document["inference_stats"][path[0]][path[1]]
    return value / 1000 if path[1] == "ns" else float(value)
