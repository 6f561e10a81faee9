"""The servers of gRPC as a service of the daemon."""

from collections.abc import Mapping, Sequence
from typing import Any

from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.grpc.servers import GrpcServers


class GrpcService(Service):
    def __init__(self, kernel: Kernel) -> None:
        self._management = kernel.management
        self._grpc = GrpcServers(
            kernel.config, kernel.tokens, kernel.registry, kernel.ready, kernel.clock, kernel.receiving,
            kernel.sending(), kernel.answered, kernel.clients, kernel.take,
        )  # fmt: skip

    @property
    def addresses(self) -> Sequence[str]:
        return self._grpc.urls

    def document(self) -> Mapping[str, Any]:
        return {"grpcAddresses": self._grpc.urls}

    def bind(self, *, alone: bool) -> None:
        self._grpc.manage(self._management())
        self._grpc.bind(alone=alone)
        self.servers = self._grpc.servers

    async def leave(self, grace: float) -> None:
        await self._grpc.close(grace)
