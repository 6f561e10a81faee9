"""A request for a model that is about to be registered is held until it is, and never longer than it may be."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.http.peer import Peer
from tsctl.daemon.models.request import Registration


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
