"""The gRPC side of one daemon, from its addresses to its end: what server.py starts and closes as one object."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from daemon.api.grpc.health import HealthService
from daemon.api.grpc.server import Calls, GrpcServer, load_grpc, methods_of
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
    """TorchServe's inference service and health checks at each address, with the tokens and the certificate of HTTP.

    Args:
        addresses: as `parse_address` reads them.
        started: as in `inference_routes`.
        answered: called with the HTTP status of each call's end.

    Attributes:
        bound: HOST:PORT of each address, with the port that the kernel chose.

    Raises:
        StartError: grpc is not installed, or an address is none.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        config: Config,
        tokens: Tokens,
        registry: Registry,
        started: Callable[[], bool],
        clock: Clock,
        answered: Callable[[int], None] = lambda status: None,
    ) -> None:
        self._addresses = [parse_address(text, PORT) for text in addresses]
        grpc = load_grpc()
        self._health = HealthService(registry, started, [SERVICE])
        methods = methods_of(InferenceService(registry)) | methods_of(self._health, open=True)
        accepted = (tokens.inference, tokens.management) if tokens.inference else ()
        self._server = GrpcServer(
            grpc, Calls(grpc, methods, clock, accepted, answered), config.max_request_size + _NAMES
        )
        self._credentials = _credentials(grpc, config.certificate_file, config.private_key_file)
        self.bound: list[str] = []

    def bind(self, *, alone: bool) -> None:
        """Bind the addresses; calls wait until `start`.

        Args:
            alone: as in `GrpcServer.bind`.

        Raises:
            StartError: an address cannot be used.
        """
        ports = self._server.bind(self._addresses, self._credentials, alone=alone)
        hosts = [f"[{host}]" if ":" in host else host for host, _ in self._addresses]
        self.bound = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]

    @property
    def urls(self) -> list[str]:
        """The bound addresses as URLs, which tell TLS from plain text."""
        return [f"{'grpc' if self._credentials is None else 'grpcs'}://{address}" for address in self.bound]

    async def start(self) -> None:
        """Answer calls."""
        await self._server.start()

    async def close(self, grace: float) -> None:
        """Accept no call, end the watchers of health, and wait for other calls, at most `grace` seconds."""
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
