"""The daemon's own path, from bytes to bytes, on a fake clock: connections, routes, models with stub workers."""

from collections.abc import Callable
from pathlib import Path

from tests.http.fake import FakeTransport
from tests.kit.build import make_model
from tsctl.daemon.api.auth import OPEN, guarded, inference_check
from tsctl.daemon.api.inference.routes import inference_routes
from tsctl.daemon.core.arena import Storage
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.http.access_log import AccessLog
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Access, Listener
from tsctl.daemon.http.messages import Request
from tsctl.daemon.http.router import Router
from tsctl.daemon.metrics.metrics import Metrics
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.workers.stub import StubEngine

LIMITS = HttpLimits(64 * 2**20)


def post(model: str, size: int = 100) -> bytes:
    """A prediction as wrk sends it."""
    head = f"POST /predictions/{model} HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Length: {size}\r\n\r\n"
    return head.encode() + bytes(size)


def _nobody(request: Request, status: int, seconds: float) -> None:
    """Ignore answers."""


class Connections:
    """Open connections to one listener.

    Args:
        wanted: how many.
    """

    def __init__(
        self,
        application: Callable[[Exchange], None],
        clock: FakeClock,
        wanted: int,
        access: Access | None = None,
        storage: Storage | None = None,
    ) -> None:
        self.clock = clock
        self.listener = Listener(application, LIMITS, clock, access or _nobody, storage=storage)
        peer = ("127.0.0.1", 50000)
        self.transports = [FakeTransport(self.listener.connect(), clock.soon, peername=peer) for _ in range(wanted)]
        clock.settle()

    def send(self, request: bytes) -> None:
        """Send a request on each connection; what they answered before is forgotten."""
        for transport in self.transports:
            transport.written.clear()
            transport.receive(request)
        self.clock.settle()

    def check(self) -> None:
        """Every connection has had a good answer."""
        assert all(transport.written.startswith(b"HTTP/1.1 200 ") for transport in self.transports)


class Stack:
    """The model `model-0` with one stub worker, behind the inference routes."""

    def __init__(self, connections: int) -> None:
        self.clock = FakeClock()
        self.engine = StubEngine(self.clock)
        self.registry = Registry()
        self.metrics = Metrics()
        model = make_model(
            self.engine, self.clock, name="model-0", batch_size=8, max_delay=0.01, queue_jobs=100_000, queue_bytes=2**40
        )
        model.scale(1, 1)
        self.registry.add(model)
        self.metrics.add(model.metrics)
        self.clock.settle()
        routes = guarded(inference_routes(self.registry), inference_check("", ""), unguarded=OPEN)
        self.connections = Connections(Router(routes), self.clock, connections)

    def ask(self, request: bytes) -> None:
        """Send a request on each connection; all are answered when this returns."""
        self.connections.send(request)
        for worker in self.engine.workers:
            worker.batches.clear()  # it would keep all of them


def access_log(folder: Path, clock: FakeClock) -> AccessLog:
    return AccessLog(folder / "access.log", clock, foreground=False)
