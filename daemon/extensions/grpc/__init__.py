"""Predictions, health, reflection and management over gRPC, at addresses of its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tsctl.daemon.extension import Extension, Kernel, Service

if TYPE_CHECKING:
    from tsctl.daemon.config.config import Config


class GrpcExtension(Extension):
    name = "grpc"

    def prepare(self, config: "Config") -> None:
        if config.grpc_address or config.grpc_management_address:
            from tsctl.daemon.http.bounds.trimming import keep_memory

            keep_memory()

    def check(self, config: "Config") -> None:
        if config.grpc_address or config.grpc_management_address:
            from tsctl.daemon.api.grpc.server import load_grpc

            load_grpc()

    def install(self, kernel: Kernel) -> Service:
        if not kernel.config.grpc_address and not kernel.config.grpc_management_address:
            return _Off()
        from tsctl.daemon.extensions.grpc.service import GrpcService

        return GrpcService(kernel)


class _Off(Service):
    def document(self) -> Mapping[str, Any]:
        return {"grpcAddresses": []}
