"""A request for a model that is about to be registered is held until it is, and never longer than it may be."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.http.peer import Peer
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.version import ModelVersion
from tsctl.handlers.wire import Declared, Input


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.put("m")
    house.registry.expect("m")
    return house


def ask(house: House, target: str = "/predictions/m", *headers: str) -> Peer:
    return house.send("POST", target, b"a", *headers)


async def register(house: House, failure: str = "") -> None:
    if not failure:
        await house.registrar.register(Registration(url="m"))
        house.registry.find("m").scale(1, 1)
        house.clock.settle()
    house.registry.settle("m", failure)
    house.clock.advance(10.0)


def message(peer: Peer) -> Any:
    return json.loads(peer.bodies[0])["message"]


@pytest.mark.parametrize("target", ["/predictions/m", "/predictions/m/1.0", "/v1/models/m:predict", "/models/m/invoke"])
async def test_it_is_answered_when_the_model_is_there(house: House, target: str) -> None:
    peer = ask(house, target)
    assert peer.statuses == []

    await register(house)

    assert peer.statuses == [200]


async def test_others_are_still_unknown(house: House) -> None:
    assert ask(house, "/predictions/x").statuses == [404]
    house.registry.expect(None)
    unnamed = ask(house, "/predictions/x")
    assert unnamed.statuses == [], "an archive whose name is not known yet may be of that name"
    house.registry.settle(None)
    assert unnamed.statuses == [404]


async def test_a_model_that_could_not_be_loaded_says_why_until_it_is_registered(house: House) -> None:
    peer = ask(house)

    await register(house, failure="the archive is broken")

    assert peer.statuses == ask(house).statuses == [503]
    assert message(peer) == 'Model "m" could not be loaded at the start: the archive is broken'
    await house.serve("m")
    house.registry.remove("m")
    assert ask(house).statuses == [404]


async def test_the_deadline_ends_the_waiting(house: House) -> None:
    peer = ask(house, "/predictions/m", "x-request-deadline-ms: 500")
    house.clock.advance(0.4)
    assert peer.statuses == []

    house.clock.advance(0.2)

    assert peer.statuses == [504]
    await register(house)
    assert peer.statuses == [504]


@pytest.mark.parametrize("headers", ["x-request-deadline-ms: soon"])
async def test_what_is_invalid_is_told_at_once(house: House, headers: str) -> None:
    assert ask(house, "/predictions/m", headers).statuses == [400]


async def test_a_client_that_leaves_is_forgotten(house: House) -> None:
    peer = ask(house)
    peer.leave()

    await register(house)

    assert house.registry.find("m").metrics.named.requests + house.registry.find("m").metrics.unnamed.requests == 0


async def test_no_more_are_held_than_may_wait_in_a_queue(house: House) -> None:
    peers = [ask(house) for _ in range(3)]  # the house's limit is two

    assert [peer.statuses for peer in peers] == [[], [], [503]]
    assert peers[2].answers[0].headers["retry-after"] == "1"


async def test_whoever_asks_whether_it_is_ready_is_told_at_once(house: House) -> None:
    assert house.send("GET", "/ready/m").statuses == [503]


async def test_a_stop_refuses_them(house: House) -> None:
    peer = ask(house)

    house.held.close()

    assert peer.statuses == [503]


async def loading(root: Path, config: str = "") -> tuple[House, ModelVersion]:
    """Register a model whose first worker takes 5 seconds to load."""
    house = House(root)
    house.engine.load_time = 5.0
    model = await house.serve("m", config=config)
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


async def test_one_that_waits_for_the_first_worker_is_told_why_there_is_none(tmp_path: Path) -> None:
    house, model = await loading(tmp_path)
    peer = ask(house)

    model.scale(0, 0)
    house.clock.advance(6.0)

    assert peer.statuses == [503]
    assert "Please use scale workers API" in message(peer)


@pytest.mark.parametrize(
    ("config", "header"),
    [
        ("", "x-request-deadline-ms: 500"),
        ("clientTimeoutInMills: 500\n", "Accept: */*"),
        ("queueTimeout: 0.5\n", "Accept: */*"),
    ],
)
async def test_nobody_waits_for_the_first_worker_longer_than_may_be(tmp_path: Path, config: str, header: str) -> None:
    house, _ = await loading(tmp_path, config)
    peer = ask(house, "/predictions/m", header)
    house.clock.advance(0.4)
    assert peer.statuses == []

    house.clock.advance(0.2)

    assert peer.statuses == [504]
    assert 'while model "m" was loading' in message(peer)


async def test_no_more_requests_than_the_queue_has_room_for_wait_for_the_first_worker(tmp_path: Path) -> None:
    house, _ = await loading(tmp_path)  # a queue of two

    peers = [ask(house) for _ in range(3)]

    assert [peer.statuses for peer in peers] == [[], [], [503]]
    assert peers[2].answers[0].headers["retry-after"] == "1"
    house.clock.advance(6.0)
    assert [peer.statuses for peer in peers] == [[200], [200], [503]]
