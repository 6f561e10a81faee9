"""The Open Inference Protocol, version 2, over HTTP: metadata, health, requests in tensors, the model repository.

KServe's, Triton's and MLServer's clients speak it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tsctl.daemon.declarations import ClientProtocol, MetricRow, Operations, PathFacts
from tsctl.daemon.extension import Extension, Kernel, Service

if TYPE_CHECKING:
    from tsctl.daemon.model_settings.declarations import DeclaredTensor

# Triton's metrics → what each counts, and its value in the statistics of a version. Times are microseconds.
METRICS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nv_inference_request_success": ("Requests that were answered.", ("success", "count")),
    "nv_inference_request_failure": ("Requests that failed.", ("fail", "count")),
    "nv_inference_count": ("Requests that ran.", ("inference_count",)),
    "nv_inference_exec_count": ("Batches that ran.", ("execution_count",)),
    "nv_inference_request_duration_us": ("Time of answered requests, in microseconds.", ("success", "ns")),
    "nv_inference_queue_duration_us": ("Time in the queue, in microseconds.", ("queue", "ns")),
    "nv_inference_compute_infer_duration_us": (
        "Time of batches in the workers, in microseconds.", ("compute_infer", "ns"),
    ),
    "nv_inference_pending_request_count": ("Requests that wait for a worker.", ("waiting",)),
}  # fmt: skip
_RUNS = ("infer", "explain", "generate", "generate_stream")


class OipProtocol(ClientProtocol):
    segments = ("v2",)
    prefixes = ("/v2/",)
    unguarded = ("v2/health",)
    failure_status = 500  # as on KServe, MLServer and Triton: proxies send a request again that was answered 503

    def facts(self, path: list[str]) -> PathFacts:
        match path:
            case ["v2", "repository", *_]:
                return PathFacts(runs=False, manages=True)
            case ["v2", "models", "stats"]:  # the statistics of all models
                return PathFacts(runs=False)
            case ["v2", "models", name, *_]:
                return PathFacts(name, path[-1] in _RUNS)
        return PathFacts(runs=path[-1] in _RUNS)

    def error(self, status: int, kind: str, message: str) -> Mapping[str, Any]:
        del status, kind
        return {"error": message}

    def operations(self) -> Operations:
        from tsctl.daemon.extensions.oip.openapi import operations

        return operations()

    def operations_of(
        self, model: str, inputs: "Sequence[DeclaredTensor]", outputs: "Sequence[DeclaredTensor]"
    ) -> Operations:
        from tsctl.daemon.extensions.oip.openapi import operations_of

        return operations_of(model, inputs, outputs)


class OipExtension(Extension):
    name = "oip"
    metrics = tuple(MetricRow(name, "gauge", text, asked=True) for name, (text, _) in METRICS.items())
    protocol = OipProtocol()

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.oip.service import OipService

        return OipService(kernel)
