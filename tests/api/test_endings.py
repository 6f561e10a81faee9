"""No client can move a version's judgement by how it ends its requests, over any protocol: it counts neither way."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.house import House
from tests.http.peer import Peer
from tests.kit.clients import FakeClient
from tests.kit.protocols import PROTOCOLS
from tsctl.daemon.core.job import Reply
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.models.version import ModelVersion

ASKED = {
    "HTTP": ("/predictions/m", b"xx"),
    **{each.name: each.predict("m") for each in PROTOCOLS},
}
TIMES = 30
# Reasons of refusals that nobody is alarmed for: what the operator does, and the doing of clients.
HARMLESS = {"loading", "stopping", "invalid", "client_rate"}


class Clients:
    """Clients of one version over a protocol of HTTP. Each batch takes a second."""

    def __init__(self, house: House, model: ModelVersion, target: str = "", body: bytes = b"") -> None:
        self.house, self.model, self._target, self._body = house, model, target, body
        self.client: FakeClient | None = None
        self._route = house._router
        house._router = self._route_as_client  # type: ignore[assignment]
        self._last: Peer | None = None

    def _route_as_client(self, exchange: Exchange) -> None:
        exchange.request.client = self.client
        self._route(exchange)

    async def ask(self, *headers: str) -> None:
        """Send a request, and let it go as far as it does at once."""
        self._last = self.house.send("POST", self._target, self._body, *headers)
        self.house.clock.settle()

    async def leave(self) -> None:
        """Let the last client go without its answer."""
        assert self._last is not None
        self._last.leave()
        self.house.clock.settle()

    async def rest(self) -> None:
        """Let everything come to its end."""
        for _ in range(5):
            self.house.clock.advance(5.0)
            await asyncio.sleep(0)


async def a_deadline_at_the_worker(clients: Clients) -> int:
    await clients.ask("x-request-deadline-ms: 300")
    clients.house.clock.advance(0.5)
    return 1


async def a_deadline_in_the_queue(clients: Clients) -> int:
    await clients.ask()
    await clients.ask("x-request-deadline-ms: 300")
    clients.house.clock.advance(0.5)
    return 1  # of the first


async def a_client_that_leaves_its_worker(clients: Clients) -> int:
    await clients.ask()
    await clients.leave()
    return 1


async def a_client_that_leaves_the_queue(clients: Clients) -> int:
    await clients.ask()
    await clients.ask()
    await clients.leave()
    return 1


async def an_input_that_the_handler_rejects(clients: Clients) -> int:
    clients.house.engine.answer = lambda job: Reply(422, b"no image", error="BadRequestException")
    await clients.ask()
    return 0


async def a_deadline_that_is_none(clients: Clients) -> int:
    await clients.ask("x-request-deadline-ms: soon")
    return 0


async def a_rate_beyond_the_keys(clients: Clients) -> int:
    clients.client = FakeClient("c", most=0)
    await clients.ask()
    return 0


async def a_model_that_the_key_does_not_allow(clients: Clients) -> int:
    clients.client = FakeClient("c", models=("other",))
    await clients.ask()
    return 0


async def a_body_longer_than_the_keys(clients: Clients) -> int:
    clients.client = FakeClient("c", bytes=1)
    await clients.ask()
    return 0


CHOSEN: tuple[Callable[[Clients], "asyncio.Future[int]"], ...] = (
    a_deadline_at_the_worker, a_deadline_in_the_queue, a_client_that_leaves_its_worker, a_client_that_leaves_the_queue,
    an_input_that_the_handler_rejects, a_deadline_that_is_none, a_rate_beyond_the_keys,
    a_model_that_the_key_does_not_allow, a_body_longer_than_the_keys,
)  # type: ignore[assignment]  # fmt: skip


def alarming(model: ModelVersion) -> list[str]:
    """Return the counts beyond zero that operators are alarmed for, of the answers of a version."""
    metrics = model.metrics
    counts = {
        "bad": metrics.counts.errors,
        "expired by the operator's limit": (metrics.expirations - metrics.given_up).total(),
        "refused": sum(count for why, count in metrics.refusals.items() if why not in HARMLESS),
        "crashing": metrics.crashing,
        "exits": sum(count for how, count in metrics.exits.items() if how != "stopped"),
    }
    return [name for name, count in counts.items() if count]


every_end = pytest.mark.parametrize("chosen", CHOSEN, ids=lambda each: each.__name__)


@every_end
@pytest.mark.parametrize("protocol", ASKED)
async def test_an_end_that_a_client_chose_counts_neither_way(
    tmp_path: Path, protocol: str, chosen: Callable[[Clients], "asyncio.Future[int]"]
) -> None:
    await check_end(tmp_path, lambda house, model: Clients(house, model, *ASKED[protocol]), chosen)


async def check_end(
    root: Path, make: Callable[[House, ModelVersion], Clients], chosen: Callable[[Clients], "asyncio.Future[int]"]
) -> None:
    """Let clients end their requests in a way of their choice, and see that this counts neither for nor against."""
    house = House(root, queue_jobs="100")
    house.engine.capacity = 1
    house.engine.batch_time = lambda size: 1.0
    model = await house.serve("m", config="batching: greedy")
    clients = make(house, model)

    ran = 0
    for _ in range(TIMES):
        ran += await chosen(clients)
        await clients.rest()

    clients.client = None
    counts = model.metrics.counts
    assert (counts.judged, counts.errors) == (ran, 0)
    assert sum(counts.latencies) == ran, "what a worker has run to its end counts, whoever waited for it; else nothing"
    assert alarming(model) == []
    statuses = [(await house.ask("GET", each)).status for each in ("/ping", "/ready", "/ready/m")]
    assert (statuses, model.word, model.pool.crashes) == ([200, 200, 200], "ready", 0)


async def test_failures_are_alarming(house: House) -> None:
    model = await house.serve("m")
    house.engine.answer = lambda job: Reply(503, b"no luck", error="InternalServerException")

    await house.ask("POST", "/predictions/m", b"x")

    assert alarming(model) == ["bad"]
