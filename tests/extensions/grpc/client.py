"""A gRPC server over the parts of a daemon in memory, on a port of the kernel's choice, and a client of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.core.arena import Take
from tsctl.daemon.core.client import Clients
from tsctl.daemon.core.job import Job
from tsctl.daemon.extensions.grpc.health import HealthService
from tsctl.daemon.extensions.grpc.oip import SERVICES, OpenInferenceService
from tsctl.daemon.extensions.grpc.prediction import ServiceParts
from tsctl.daemon.extensions.grpc.protos.messages import message_class, service
from tsctl.daemon.extensions.grpc.server import Calls, GrpcServer, load_grpc, methods_of
from tsctl.daemon.extensions.grpc.torchserve import InferenceService
from tsctl.daemon.extensions.grpc.waiting.arrivals import Arrivals
from tsctl.daemon.extensions.grpc.waiting.held_calls import AwaitedModels
from tsctl.daemon.extensions.grpc.waiting.incoming_messages import CALLS, SHARE, Incoming
from tsctl.daemon.extensions.grpc.waiting.ordered_answers import StepTurns
from tsctl.daemon.extensions.grpc.waiting.writing import Writing
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.bounds.sending import SendBudget
from tsctl.daemon.http.forwarded_for import TrustedProxies
from tsctl.daemon.http.messages import Request

pytest.importorskip("grpc", reason="the extra `dev` brings grpcio: make install again")
grpc: Any = load_grpc()

INFERENCE = "org.pytorch.serve.grpc.inference.InferenceAPIsService"
HEALTH = "grpc.health.v1.Health"
MOST_UNREAD = 10_000_000  # bytes of answers that are being written
KEEP_ALIVE = 75.0  # seconds
PATIENCE = 20.0  # seconds until a test that hangs fails


class GrpcHouse:
    """A daemon's parts behind a gRPC server.

    Attributes:
        statuses: HTTP statuses of the calls that ended.
        peers: the clients of these, as the access log names them.
        names: of the known clients whose calls ended.
        sending: the budget of large answers.
    """

    def __init__(
        self,
        root: Path,
        tokens: tuple[str, ...] = (),
        most: int = 100_000,
        clients: Clients | None = None,
        calls: int = CALLS,
        take: Take | None = None,
        proxies: TrustedProxies | None = None,
    ) -> None:
        self.grpc = grpc
        self.house = House(root)
        self.statuses: list[int] = []
        self.peers: list[str] = []
        self.names: list[str] = []
        self.health = HealthService(self.house.registry, lambda: self.house.started, [INFERENCE], every=0.01)
        models = AwaitedModels(self.house.registry, 2, ReceiveBudget())
        self.sending = SendBudget(MOST_UNREAD)
        self.arrivals = arrivals = Arrivals(self.house.clock)
        self.parts = ServiceParts(self.house.registry, lambda: self.house.started, models, arrivals, take, StepTurns())
        methods = methods_of(InferenceService(self.parts))
        methods |= methods_of(self.health, open=True)
        for name in SERVICES:
            methods |= methods_of(OpenInferenceService(name, self.parts))
        writing = Writing(self.sending, self.house.clock)
        self.receiving = ReceiveBudget()
        self.incoming = Incoming(self.house.clock, most, self.receiving, 60.0, KEEP_ALIVE)
        self.calls = Calls(
            self.grpc, methods, self.house.clock, arrivals, writing, self.incoming, tokens, self._note, clients, calls,
            proxies=proxies,
        )  # fmt: skip
        at_once = SHARE * (calls + 10)  # one connection makes all
        self.server = GrpcServer(self.grpc, self.calls, most, calls_at_once=at_once)
        self.port = 0
        self.channel: Any = None
        self.stream: Any = None  # the call whose pieces a test reads

    def _note(self, request: Request, status: int, seconds: float) -> None:
        assert request.target.startswith("/") and request.id and request.peer and seconds >= 0
        self.statuses.append(status)
        self.peers.append(request.peer)
        if request.client is not None:
            self.names.append(request.client.name)

    def call(self, name: str, request: Any = None, owner: str = INFERENCE, **options: Any) -> Any:
        """Begin a call; `request` is a message, or an iterable of messages."""
        method = next(each for each in service(owner).methods if each.name == name)
        kinds = [message_class(each.full_name) for each in (method.input_type, method.output_type)]
        way = ["stream" if streams else "unary" for streams in (method.client_streaming, method.server_streaming)]
        made = getattr(self.channel, "_".join(way))(
            f"/{owner}/{name}", request_serializer=kinds[0].SerializeToString, response_deserializer=kinds[1].FromString
        )
        return made(kinds[0]() if request is None else request, **options)

    def call_in_pieces(self, name: str, **options: Any) -> Any:
        """Begin a call of a method that takes one message, which the test writes when it likes to."""
        kinds = [
            message_class(each.full_name)
            for method in service(INFERENCE).methods
            if method.name == name
            for each in (method.input_type, method.output_type)
        ]
        made = self.channel.stream_unary(
            f"/{INFERENCE}/{name}", request_serializer=kinds[0].SerializeToString,
            response_deserializer=kinds[1].FromString,
        )  # fmt: skip
        return made(**options)

    async def settled(self, call: Any) -> Any:
        """Return the answer of a call, while the daemon's clock goes on."""
        waiting = asyncio.ensure_future(_awaited(call))
        async with asyncio.timeout(PATIENCE):
            while not waiting.done():
                self.house.clock.settle()
                await asyncio.wait([waiting], timeout=0.002)
        return await waiting


async def _awaited(call: Any) -> Any:
    return await call


def prediction(name: str, version: str = "", **inputs: bytes) -> Any:
    """Return the request of a prediction."""
    return message_class("org.pytorch.serve.grpc.inference.PredictionsRequest")(
        model_name=name, model_version=version, input=inputs
    )


@asynccontextmanager
async def grpc_house(root: Path, **parts: Any) -> AsyncIterator[GrpcHouse]:
    """Serve a daemon's parts over gRPC; `parts` are those of GrpcHouse."""
    made = GrpcHouse(root, **parts)
    (made.port,) = made.server.bind([("127.0.0.1", 0)])
    await made.server.begin()
    try:
        async with made.grpc.aio.insecure_channel(f"127.0.0.1:{made.port}") as made.channel:
            yield made
    finally:
        made.health.closing.set()
        await made.server.close(0.0)


def jobs_of(made: GrpcHouse) -> list[Job]:
    """The jobs that workers have had, in the order of their batches."""
    return [job for worker in made.house.engine.workers for batch in worker.batches for job in batch.jobs]
