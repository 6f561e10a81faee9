"""The Open Inference Protocol, version 2, over HTTP: metadata, health, requests in tensors, the model repository.

KServe's, Triton's and MLServer's clients speak it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tsctl.daemon.extension import ClientProtocol, Extension, Kernel, Operations, PathFacts, Service

if TYPE_CHECKING:
    from tsctl.daemon.model_settings.declarations import DeclaredTensor

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
    protocol = OipProtocol()

    def install(self, kernel: Kernel) -> Service:
        from tsctl.daemon.extensions.oip.service import OipService

        return OipService(kernel)
