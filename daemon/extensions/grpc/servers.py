"""The gRPC side of one daemon: its addresses, what is served at each, and the servers that the daemon begins."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tsctl.daemon.config.endpoints import parse_address
from tsctl.daemon.core.client import Clients
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.extensions.grpc.health import HealthService, reflection_of
from tsctl.daemon.extensions.grpc.management import ManagementService, RepositoryService, Routes
from tsctl.daemon.extensions.grpc.oip import SERVICES, OpenInferenceService
from tsctl.daemon.extensions.grpc.prediction import ServiceParts
from tsctl.daemon.extensions.grpc.server import Calls, GrpcServer, Method, load_grpc, methods_of
from tsctl.daemon.extensions.grpc.torchserve import SEQUENCE_HEADER, SERVICE, InferenceService
from tsctl.daemon.extensions.grpc.waiting.arrivals import Arrivals
from tsctl.daemon.extensions.grpc.waiting.held_calls import AwaitedModels
from tsctl.daemon.extensions.grpc.waiting.incoming_messages import Incoming, calls_at_once
from tsctl.daemon.extensions.grpc.waiting.ordered_answers import StepTurns
from tsctl.daemon.extensions.grpc.waiting.writing import Writing
from tsctl.daemon.http.forwarded_for import TrustedProxies

PORT = 7070  # TorchServe's
MANAGEMENT_PORT = 7071  # TorchServe's
_NAMES = 64 * 1024  # bytes of a message beside the inputs: their names, and the model's


class GrpcService(Service):
    """The services of predictions and of management at their addresses, each with health and reflection.

    Tokens, keys and certificate are those of HTTP; keys open predictions, and no management. Answers have a budget of
    gRPC's own.

    Args:
        kernel: its configuration names an address at least.

    Raises:
        StartError: grpc is not installed, or an address is none.
    """

    def __init__(self, kernel: Kernel) -> None:
        config, clock = kernel.config, kernel.clock
        self._kernel = kernel
        self._addresses = [parse_address(text, PORT) for text in config.grpc_address or ()]
        self._managing = [parse_address(text, MANAGEMENT_PORT) for text in config.grpc_management_address or ()]
        self._at: list[tuple[GrpcServer, list[tuple[str, int]]]] = []
        self._grpc = load_grpc()
        self._writing, self._turns = Writing(kernel.bounds.send_budget(), clock), StepTurns()
        self._most = config.max_request_size + _NAMES
        receiving = kernel.bounds.receiving
        self._incoming = Incoming(
            clock, self._most, receiving, config.body_timeout, config.keep_alive, noted=receiving.noted
        )
        self._calls = calls_at_once(config.queue_jobs)
        self._health = HealthService(kernel.registry, kernel.ready, [SERVICE, *SERVICES])
        self._models = AwaitedModels(kernel.registry, config.queue_jobs, receiving)
        self._credentials = _credentials(self._grpc, config.certificate_file, config.private_key_file)
        self._proxies = TrustedProxies(config.trusted_proxies) if config.trusted_proxies else None
        self._sequence_header = getattr(config, "sequence_id_header", SEQUENCE_HEADER)
        self._open = self._parts()  # of the addresses that have predictions alone
        self._predictions = self._predicting(self._open)

    def _parts(self) -> ServiceParts:
        kernel, arrivals = self._kernel, Arrivals(self._kernel.clock)
        return ServiceParts(kernel.registry, kernel.ready, self._models, arrivals, kernel.bounds.take, self._turns)

    def _manage(self, routes: Routes) -> None:
        """Serve management at its addresses, if there are any, by HTTP's routes of a management address.

        An address that is one of predictions, too, serves both: the management token opens what manages, and what opens
        predictions elsewhere opens them there.
        """
        both = [each for each in self._managing if each in self._addresses]
        alone = [each for each in self._managing if each not in both]
        token = self._kernel.tokens.management
        for addresses in filter(None, (alone, both)):
            parts = self._parts()
            methods = methods_of(ManagementService(routes), token=token)
            for name in SERVICES:
                methods |= methods_of(RepositoryService(name, parts, routes), token=token)
            if addresses is both:
                repository = {name: each for name, each in methods.items() if "/Repository" in name}
                methods |= self._predicting(parts) | repository
                self._add(methods, self._accepted, both, parts.arrivals, self._kernel.tokens.clients)
            else:
                self._add(methods, (token,), alone, parts.arrivals)

    @property
    def _accepted(self) -> Sequence[str]:
        """The tokens that open predictions; none where they are open."""
        tokens = self._kernel.tokens
        return (tokens.inference, tokens.management) if tokens.inference or tokens.clients is not None else ()

    def _predicting(self, parts: ServiceParts) -> dict[str, Method]:
        methods = methods_of(InferenceService(parts, self._sequence_header))
        for name in SERVICES:
            methods |= methods_of(OpenInferenceService(name, parts))
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
            self._grpc, methods, self._kernel.clock, arrivals, self._writing, self._incoming, accepted,
            self._kernel.observation.requests.note, clients, self._calls, self._turns, self._proxies,
        )  # fmt: skip
        grace, end_watchers = self._kernel.config.grace, self._health.closing.set
        server = GrpcServer(self._grpc, calls, self._most, grace, self._calls, end_watchers)
        self._at.append((server, addresses))

    def servers(self, managing: Routes, *, alone: bool) -> Sequence[GrpcServer]:
        self._at = []
        predicting = [each for each in self._addresses if each not in self._managing]
        if predicting:
            methods, clients = dict(self._predictions), self._kernel.tokens.clients
            self._add(methods, self._accepted, predicting, self._open.arrivals, clients)
        self._manage(managing)
        for server, addresses in self._at:
            server.bind(addresses, self._credentials, alone=alone)
        return [server for server, _ in self._at]

    def document(self) -> Mapping[str, Any]:
        return {"grpcAddresses": self._urls(self._addresses), "grpcManagementAddresses": self._urls(self._managing)}

    def _urls(self, configured: Sequence[tuple[str, int]]) -> list[str]:
        """Return the URLs of those servers whose addresses are among these; one that serves both is in both lists."""
        return [url for server, addresses in self._at if addresses[0] in configured for url in server.urls]


def _credentials(grpc: Any, certificate: Path | None, key: Path | None) -> Any:
    """Return grpc's credentials of a certificate; None without one."""
    if certificate is None or key is None:
        return None
    try:
        return grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    except OSError as error:
        raise StartError(f"cannot read `{certificate}` and `{key}`: {error.strerror}") from None
