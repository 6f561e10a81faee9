"""The gRPC side of one daemon, from its addresses to its end: what server.py starts and closes as one object."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from daemon.api.grpc.awaited import AwaitedModels
from daemon.api.grpc.health import HealthService
from daemon.api.grpc.oip import SERVICES, OpenInferenceService
from daemon.api.grpc.server import Answered, Calls, GrpcServer, load_grpc, methods_of
from daemon.api.grpc.torchserve import SERVICE, InferenceService
from daemon.config.config import Config
from daemon.config.endpoints import parse_address
from daemon.config.tokens import Tokens
from daemon.core.clock import Clock
from daemon.core.errors import StartError
from daemon.models.registry import Registry

PORT = 7070  # TorchServe's
_NAMES = 64 * 1024  # bytes of a message beside the inputs: their names, and the model's


class GrpcServers:
    """The services of predictions and health at each address, with the tokens and the certificate of HTTP.

    Args:
        config: names the addresses; without any, nothing is imported, and nothing listens.
        started: as in `inference_routes`.
        answered: as in `Calls`.

    Attributes:
        bound: HOST:PORT of each address, with the port that the kernel chose.

    Raises:
        StartError: grpc is not installed, or an address is none.
    """

    def __init__(
        self,
        config: Config,
        tokens: Tokens,
        registry: Registry,
        started: Callable[[], bool],
        clock: Clock,
        answered: Answered = lambda request, status, seconds: None,
    ) -> None:
        self._addresses = [parse_address(text, PORT) for text in config.grpc_address or ()]
        self.bound: list[str] = []
        self._server: GrpcServer | None = None
        self._credentials: Any = None
        if not self._addresses:
            return
        grpc = load_grpc()
        self._health = HealthService(registry, started, [SERVICE, *SERVICES])
        models = AwaitedModels(registry, config.queue_jobs)
        methods = methods_of(InferenceService(registry, models)) | methods_of(self._health, open=True)
        for name in SERVICES:
            methods |= methods_of(OpenInferenceService(name, registry, started, models))
        accepted = (tokens.inference, tokens.management) if tokens.inference else ()
        self._server = GrpcServer(
            grpc, Calls(grpc, methods, clock, accepted, answered), config.max_request_size + _NAMES
        )
        self._credentials = _credentials(grpc, config.certificate_file, config.private_key_file)

    def bind(self, *, alone: bool) -> None:
        """Bind the addresses; calls wait until `start`.

        Args:
            alone: as in `GrpcServer.bind`.

        Raises:
            StartError: an address cannot be used.
        """
        if self._server is None:
            return
        ports = self._server.bind(self._addresses, self._credentials, alone=alone)
        hosts = [f"[{host}]" if ":" in host else host for host, _ in self._addresses]
        self.bound = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]

    @property
    def urls(self) -> list[str]:
        """The bound addresses as URLs, which tell TLS from plain text."""
        return [f"{'grpc' if self._credentials is None else 'grpcs'}://{address}" for address in self.bound]

    async def start(self) -> None:
        """Answer calls."""
        if self._server is not None:
            await self._server.start()

    async def close(self, grace: float) -> None:
        """Accept no call, end the watchers of health, and wait for other calls, at most `grace` seconds."""
        if self._server is not None:
            self._health.closing.set()
            await self._server.close(grace)


def _credentials(grpc: Any, certificate: Path | None, key: Path | None) -> Any:
    """Return grpc's credentials of a certificate; None without one."""
    if certificate is None or key is None:
        return None
    try:
        return grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    except OSError as error:
        raise StartError(f"cannot read `{certificate}` and `{key}`: {error.strerror}") from None
