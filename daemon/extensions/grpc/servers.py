"""The gRPC side of one daemon, from its addresses to its end: what server.py starts and closes as one object."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tsctl.daemon.config.config import Config
from tsctl.daemon.config.endpoints import parse_address
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.arena import Take
from tsctl.daemon.core.client import Clients
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.grpc.health import HealthService, reflection_of
from tsctl.daemon.extensions.grpc.management.relay import Routes
from tsctl.daemon.extensions.grpc.management.torchserve import ManagementService, RepositoryService
from tsctl.daemon.extensions.grpc.oip import SERVICES, OpenInferenceService
from tsctl.daemon.extensions.grpc.server import Answered, Calls, GrpcServer, Method, load_grpc, methods_of
from tsctl.daemon.extensions.grpc.torchserve import SEQUENCE_HEADER, SERVICE, InferenceService
from tsctl.daemon.extensions.grpc.waiting.arrivals import Arrivals
from tsctl.daemon.extensions.grpc.waiting.awaited import AwaitedModels
from tsctl.daemon.extensions.grpc.waiting.in_order import StepTurns
from tsctl.daemon.extensions.grpc.waiting.incoming import Incoming, calls_at_once
from tsctl.daemon.extensions.grpc.waiting.writing import Writing
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.bounds.sending import SendBudget
from tsctl.daemon.http.forwarded import TrustedProxies
from tsctl.daemon.models.registry import Registry

PORT = 7070  # TorchServe's
MANAGEMENT_PORT = 7071  # TorchServe's
_NAMES = 64 * 1024  # bytes of a message beside the inputs: their names, and the model's


class GrpcServers:
    """The services of predictions and of management at their addresses, each with health and reflection.

    Tokens and certificate are those of HTTP.

    Args:
        config: names the addresses; without any, nothing is imported, and nothing listens.
        started: as in `inference_routes`.
        receiving: as in `AwaitedModels`.
        sending: the budget for large answers, of gRPC alone.
        answered, clients: as in `Calls`; keys open predictions, and no management.
        take: as in `OpenInferenceService`.

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
        receiving: ReceiveBudget,
        sending: SendBudget,
        answered: Answered = lambda request, status, seconds: None,
        clients: Clients | None = None,
        take: Take | None = None,
    ) -> None:
        self._addresses = [parse_address(text, PORT) for text in config.grpc_address or ()]
        self._managing = [parse_address(text, MANAGEMENT_PORT) for text in config.grpc_management_address or ()]
        self.bound: list[str] = []
        self._servers: list[tuple[GrpcServer, list[tuple[str, int]]]] = []
        self._credentials: Any = None
        if not self._addresses and not self._managing:
            return
        self._grpc = load_grpc()
        self._registry, self._started, self._clock, self._answered = registry, started, clock, answered
        self._tokens = tokens
        self._writing, self._turns = Writing(sending, clock), StepTurns()
        self._most = config.max_request_size + _NAMES
        self._grace = config.grace
        self._incoming = Incoming(clock, self._most, receiving, config.body_timeout, noted=receiving.noted)
        self._calls = calls_at_once(config.queue_jobs)
        self._health = HealthService(registry, started, [SERVICE, *SERVICES])
        self._models = AwaitedModels(registry, config.queue_jobs, receiving)
        self._credentials = _credentials(self._grpc, config.certificate_file, config.private_key_file)
        self._take, self._clients = take, clients
        self._proxies = TrustedProxies(config.trusted_proxies) if config.trusted_proxies else None
        self._sequence_header = getattr(config, "sequence_id_header", SEQUENCE_HEADER)
        alone = [each for each in self._addresses if each not in self._managing]
        if alone:
            arrivals = Arrivals(clock)
            self._add(self._predicting(arrivals), self._accepted, alone, arrivals, clients)

    def manage(self, routes: Routes) -> None:
        """Serve management at its addresses, if there are any, by HTTP's routes of a management address.

        An address that is one of predictions, too, serves both: the management token opens what manages, and what opens
        predictions elsewhere opens them there.
        """
        both = [each for each in self._managing if each in self._addresses]
        alone = [each for each in self._managing if each not in both]
        token = self._tokens.management
        for addresses in filter(None, (alone, both)):
            arrivals = Arrivals(self._clock)
            methods = methods_of(ManagementService(routes), token=token)
            for name in SERVICES:
                service = RepositoryService(name, self._registry, self._started, self._models, arrivals, routes)
                methods |= methods_of(service, token=token)
            if addresses is both:
                repository = {name: each for name, each in methods.items() if "/Repository" in name}
                methods |= self._predicting(arrivals) | repository
                self._add(methods, self._accepted, both, arrivals, self._clients)
            else:
                self._add(methods, (token,), alone, arrivals)

    @property
    def _accepted(self) -> Sequence[str]:
        """The tokens that open predictions; none where they are open."""
        tokens = self._tokens
        return (tokens.inference, tokens.management) if tokens.inference or self._clients is not None else ()

    def _predicting(self, arrivals: Arrivals) -> dict[str, Method]:
        """Return the methods of predictions."""
        registry, models, take, turns = self._registry, self._models, self._take, self._turns
        methods = methods_of(InferenceService(registry, models, arrivals, take, turns, self._sequence_header))
        for name in SERVICES:
            methods |= methods_of(OpenInferenceService(name, registry, self._started, models, arrivals, take, turns))
        return methods

    def _add(
        self,
        methods: dict[str, Method],
        accepted: Sequence[str],
        addresses: list[tuple[str, int]],
        arrivals: Arrivals,
        clients: Clients | None = None,
    ) -> None:
        methods |= methods_of(self._health, open=True)
        methods |= reflection_of({name.split("/")[1] for name in methods})
        calls = Calls(
            self._grpc, methods, self._clock, arrivals, self._writing, self._incoming, accepted, self._answered,
            clients, self._calls, self._turns, self._proxies,
        )  # fmt: skip
        self._servers.append((GrpcServer(self._grpc, calls, self._most, self._grace, self._calls), addresses))

    def bind(self, *, alone: bool) -> None:
        """Bind the addresses; calls wait until `start`.

        Args:
            alone: as in `GrpcServer.bind`.

        Raises:
            StartError: an address cannot be used.
        """
        for server, addresses in self._servers:
            ports = server.bind(addresses, self._credentials, alone=alone)
            hosts = [f"[{host}]" if ":" in host else host for host, _ in addresses]
            self.bound += [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]

    @property
    def urls(self) -> list[str]:
        """The bound addresses as URLs, which tell TLS from plain text."""
        return [f"{'grpc' if self._credentials is None else 'grpcs'}://{address}" for address in self.bound]

    @property
    def servers(self) -> list[GrpcServer]:
        """The servers, to be begun when they are bound."""
        return [server for server, _ in self._servers]

    async def close(self, grace: float) -> None:
        """Accept no call, end the watchers of health, and wait for other calls, at most `grace` seconds."""
        if self._servers:
            self._health.closing.set()
            await asyncio.gather(*[server.close(grace) for server, _ in self._servers])


def _credentials(grpc: Any, certificate: Path | None, key: Path | None) -> Any:
    """Return grpc's credentials of a certificate; None without one."""
    if certificate is None or key is None:
        return None
    try:
        return grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    except OSError as error:
        raise StartError(f"cannot read `{certificate}` and `{key}`: {error.strerror}") from None


class GrpcService(Service):
    """The servers of gRPC as a service of the daemon."""

    def __init__(self, kernel: Kernel) -> None:
        self._management = kernel.management
        self._grpc = GrpcServers(
            kernel.config, kernel.tokens, kernel.registry, kernel.ready, kernel.clock, kernel.receiving,
            kernel.sending(), kernel.requests.note, kernel.clients, kernel.take,
        )  # fmt: skip

    def document(self) -> Mapping[str, Any]:
        return {"grpcAddresses": self._grpc.urls}

    def bind(self, *, alone: bool) -> Sequence[str]:
        self._grpc.manage(self._management())
        self._grpc.bind(alone=alone)
        self.servers = self._grpc.servers
        return self._grpc.urls

    async def leave(self, grace: float) -> None:
        await self._grpc.close(grace)
