"""All of the daemon behind its routes, in memory: stub workers, a fake clock, a store in a temporary directory."""

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tests.api.described import Described
from tests.http.peer import Answer, Peer, Server
from tsctl.daemon import paths
from tsctl.daemon.api.guards import Guard
from tsctl.daemon.api.inference.held_requests import HeldRequests
from tsctl.daemon.api.inference.turns import Turns
from tsctl.daemon.api.inference.unpack import Unpacking
from tsctl.daemon.config.config import resolve
from tsctl.daemon.config.tokens import Tokens
from tsctl.daemon.core.errors import UpgradeFailed
from tsctl.daemon.core.job import Job
from tsctl.daemon.core.logs import ModelLogs
from tsctl.daemon.core.machine.cards import Card, FoundCards
from tsctl.daemon.core.machine.gpu import Gpus
from tsctl.daemon.events.events import Events
from tsctl.daemon.extension import Kernel, Service
from tsctl.daemon.http.bounds.receiving import ReceiveBudget
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.router import Router, join
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registrar import Registration as Wanted
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.routing.steering import answering
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.server.bounds import Bounds
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.server.fields import Fields
from tsctl.daemon.server.kernel import installed, while_there_is_room
from tsctl.daemon.server.observation import Observation
from tsctl.daemon.server.routes import tables_of
from tsctl.daemon.tables import PROTOCOLS
from tsctl.daemon.workers.stub import StubEngine

S = TypeVar("S", bound=Service)
PATIENCE = 20.0  # seconds until a test that hangs fails; no test waits for it


class House:
    """The daemon's parts, wired as the server wires them.

    Args:
        root: an empty directory.
        own: whether the routes are those of the control socket, else those of TCP addresses.
        max_body: the largest body of a request, in bytes.
        gpus: of the machine.
        settings: further settings, as texts.
    """

    def __init__(
        self,
        root: Path,
        *,
        gpus: Sequence[Card] = (),
        own: bool = True,
        max_body: int = 10_000,
        **settings: str,
    ) -> None:
        self.store = root / "store"
        self.store.mkdir()
        flags = {"state_dir": str(root), "model_store": str(self.store), "socket": str(root / "s"), "queue_jobs": "2"}
        flags |= {"max_request_size": str(max_body), "enable_model_api": "true"}
        self._server = Server(self._route, HttpLimits(max_body=max_body))
        self.clock, self.exchanges = self._server.clock, self._server.exchanges
        self.peers: list[Peer] = []  # of the exchanges
        self.registry = Registry()
        self.engine = StubEngine(self.clock)
        logs = ModelLogs(partial(paths.model_log, root), foreground=False)
        config = resolve(flags | settings, {})
        self.observation = observation = Observation(Events(), self.clock, self.clock.soon)
        self.metrics = observation.metrics
        self.registrar = Registrar(
            config, self.registry, self.engine, self.clock, logs, self.metrics, recurring=observation.recurring
        )
        self.registrar.clean()
        self.turns = Turns(self.clock.now)
        self.started = True  # what is served from the start has been registered
        ready: Callable[[], bool] = lambda: self.started  # noqa: E731
        if not config.ready_when_full:
            ready = while_there_is_room(ready, partial(answering, self.registry))
        self.gpus = Gpus(self.clock, gpus, lambda: FoundCards(gpus, "580.1"))
        bounds = Bounds(2**30, 2**30, self.clock, observation.recurring, lambda: None)
        self.kernel = kernel = Kernel(
            config, Tokens(), self.clock, observation, bounds, self.gpus, self.registry, self.registrar,
            ready, self.turns, lambda pid: None, Fields(self.clock, 1.0),
        )  # fmt: skip
        self.services = kernel.fields.services = [*installed(EXTENSIONS, kernel), observation]
        self._described = Described(own=own)
        self.tables = tables = tables_of(kernel, refuse_upgrade, ())
        self.held = HeldRequests(self.registry, self.clock, config.queue_jobs, config.queue_bytes)
        self._unpack = Unpacking(self.turns, ReceiveBudget(), None, max_body)
        routes = tables.control if own else join(tables.clients, tables.managers)
        self._router = Router(routes, self.held.hold, self._unpack)

    def _route(self, exchange: Exchange) -> None:
        self._router(exchange)

    def service(self, kind: type[S]) -> S:
        """The service of an extension, to be begun by a test."""
        return next(each for each in self.services if isinstance(each, kind))

    def samples(self, metric: str) -> dict[tuple[str, ...], float]:
        """The samples of an extension's metric, by the values of their labels."""
        found = (zip(each.extension.metrics, each.samples(), strict=False) for each in self.services)
        return next(dict(samples) for rows in found for row, samples in rows if row.name == metric)

    def manage_alone(self) -> None:
        """Serve the management routes only, as at an address of their own."""
        self._router = Router(self.tables.managers)

    def serve_predictions_alone(self) -> None:
        """Serve the routes of an inference address only."""
        self._router = Router(self.tables.clients, unpack=self._unpack)

    def router_behind(self, guard: Guard) -> Router:
        """The routes as they are behind the checks of an endpoint."""
        return guard.router(self.tables.clients, self.tables.managers, self.tables.metrics)

    def put(self, name: str, version: str = "1.0", config: str = "", place: str | None = None) -> Path:
        """Put a model into the store, as a directory named after it unless `place` says otherwise."""
        directory = self.store / (place or name)
        (directory / "MAR-INF").mkdir(parents=True)
        model = {"modelName": name, "modelVersion": version, "handler": "image_classifier"}
        if config:
            model["configFile"] = "model-config.yaml"
            (directory / "model-config.yaml").write_text(config)
        (directory / "MAR-INF/MANIFEST.json").write_text(json.dumps({"runtime": "python", "model": model}))
        return directory

    async def serve(self, name: str, version: str = "1.0", workers: int = 1, config: str = "") -> ModelVersion:
        """Register a version, with workers that are ready."""
        self.put(name, version, config, place=f"{name}-{version}")
        model = await self.registrar.register(Wanted(url=f"{name}-{version}"))
        model.scale(workers, workers)
        self.clock.settle()
        return model

    def send(self, method: str, target: str, body: bytes = b"", *headers: str) -> Peer:
        """Send a request on a new connection; the answer may come later."""
        peer = self._server.connect()
        self.peers.append(peer)
        lines = [f"{method} {target} HTTP/1.1", "Host: a", f"Content-Length: {len(body)}", *headers, "", ""]
        peer.send("\r\n".join(lines).encode() + body)
        return peer

    async def ask(self, method: str, target: str, body: bytes = b"", *headers: str) -> Answer:
        """Send a request, and let everything run until it is answered, as the API description tells."""
        peer = self.send(method, target, body, *headers)
        exchange = self.exchanges[-1]
        await self.until(lambda: exchange.done)
        (answer,) = peer.answers
        assert not (found := self._described.faults(method, target, answer)), f"{method} {target}: {found}"
        return answer

    @property
    def last_job(self) -> Job:
        """The job that came last to the worker that was started last."""
        return self.engine.workers[-1].batches[-1].jobs[-1]

    async def until(self, condition: Callable[[], object]) -> None:
        """Let everything run until something is true."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                await asyncio.sleep(0)
                self.clock.settle()

    async def tell(self, method: str, target: str, body: bytes = b"", *headers: str) -> tuple[int, Any]:
        """Send a request; give status and document of its answer."""
        answer = await self.ask(method, target, body, *headers)
        return answer.status, json.loads(answer.body)


async def refuse_upgrade(*_: object, **asked: object) -> dict[str, Any]:
    raise UpgradeFailed(f"a test has no successor: {asked}")


def error(code: int, kind: str, message: str, target: str = "") -> tuple[int, dict[str, Any]]:
    """Status and document of an error's answer to a request for `target`."""
    document = {"code": code, "type": kind, "message": message}
    words = [each.error(code, kind, message) for each in PROTOCOLS if target.startswith(each.prefixes)]
    return code, {**(words[0] if words else {}), **document}


def sentence(text: str, status: int = 200) -> tuple[int, dict[str, str]]:
    """Status and document of a command's answer."""
    return status, {"status": text}


def said(told: tuple[int, Any]) -> tuple[int, dict[str, str]]:
    """Status and TorchServe's part of a registration's answer; the control socket has more (test_registered.py)."""
    return told[0], {"status": told[1]["status"]}
