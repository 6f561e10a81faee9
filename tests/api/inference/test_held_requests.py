"""A request for a model that is about to be registered is held until it is, and never longer than it may be."""

from pathlib import Path

import pytest

from tests.api.house import House
from tests.http.peer import Peer
from tsctl.daemon.api.inference.held_requests import HeldRequests
from tsctl.daemon.core.errors import ModelNotFound
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Declared, Input


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.put("m")
    house.registry.expect("m")
    return house


def ask(house: House, target: str = "/predictions/m") -> Peer:
    return house.send("POST", target, b"a")


async def test_others_are_unknown_once_no_archive_may_be_of_their_name(house: House) -> None:
    assert ask(house, "/predictions/x").statuses == [404]
    house.registry.expect(None)
    unnamed = ask(house, "/predictions/x")
    assert unnamed.statuses == [], "an archive whose name is not known yet may be of that name"
    house.registry.settle(None)
    assert unnamed.statuses == [404]


async def test_a_stop_refuses_them(house: House) -> None:
    peer = ask(house)

    house.held.close()

    assert peer.statuses == [503]


async def test_one_whose_client_leaves_as_another_is_answered_is_passed_over(house: House) -> None:
    for _ in range(2):
        ask(house, "/predictions/x")
    first, second = house.exchanges
    routed: list[Exchange] = []

    def route(exchange: Exchange) -> None:
        routed.append(exchange)
        assert second.on_leave is not None
        second.on_leave(True)

    held = HeldRequests(house.registry, house.clock, 2, 10)
    assert all(held.hold(each, ModelNotFound("m"), route) for each in (first, second))
    house.registry.settle("m")

    assert routed == [first]


async def loading(root: Path) -> tuple[House, ModelVersion]:
    """Register a model whose first worker takes 5 seconds to load."""
    house = House(root)
    house.engine.load_time = 5.0
    model = await house.serve("m")
    assert not model.was_ready
    return house, model


async def test_a_request_waits_while_the_first_worker_loads_and_is_read_as_its_handler_reads(tmp_path: Path) -> None:
    """A body that curl calls a form is one for some handlers, and not for those that declare another input."""
    house, model = await loading(tmp_path)
    peer = house.send("POST", "/predictions/m", b"a text", "Content-Type: application/x-www-form-urlencoded")
    house.clock.settle()
    assert peer.statuses == []

    house.engine.declared = Declared([Input("text", "text")], batches=False)
    house.clock.advance(6.0)

    assert peer.statuses == [200]
    (job,) = house.engine.workers[0].batches[0].jobs
    assert [bytes(each.value) for each in job.params] == [b"a text"]
    assert not any("_look_soon" in repr(each) for each in model.listeners)
