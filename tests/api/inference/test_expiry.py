"""How long a prediction may take, and which goes first: what clients say in headers, and models in their settings."""

import asyncio
from pathlib import Path

import pytest

from tests.api.house import House

BUDGET = "x-request-deadline-ms: "


@pytest.fixture
def house(tmp_path: Path) -> House:
    """Every batch takes a second, and waits in the queue until its worker is idle."""
    house = House(tmp_path, queue_jobs="100")
    house.engine.capacity = 1
    house.engine.batch_time = lambda size: 1.0
    return house


def serve(house: House) -> None:
    asyncio.run(house.serve("m", config="batching: greedy"))


def test_the_budget_counts_from_the_headers(house: House) -> None:
    serve(house)
    peer = house.send("POST", "/predictions/m", b"")
    house.clock.advance(1.0)
    head = f"POST /predictions/m HTTP/1.1\r\nHost: a\r\n{BUDGET}300\r\nContent-Length: 2\r\n\r\n"
    peer.send(head.encode() + b"a")
    house.clock.advance(0.25)
    peer.send(b"b")

    house.clock.advance(0.04)
    assert peer.statuses == [200]
    house.clock.advance(0.02)

    assert peer.statuses == [200, 504]
    assert b"it took 250 ms to arrive, waited 0 ms in the queue and has run for 50 ms." in peer.bodies[1]


@pytest.mark.parametrize("value", ["1000000000000000000000", "9" * 5000, "007000"])
def test_any_whole_number_is_a_budget(house: House, value: str) -> None:
    serve(house)

    peer = house.send("POST", "/predictions/m", b"", BUDGET + value)
    house.clock.advance(2.0)

    assert peer.statuses == [200]


def test_an_answer_that_has_begun_is_cut_off_visibly(house: House) -> None:
    serve(house)
    peer = house.send("POST", "/predictions/m", b"", BUDGET + "500")
    house.engine.workers[0].stream(b"first")

    house.clock.advance(0.6)
    assert peer.transport.aborted
    assert not peer.transport.written.endswith(b"0\r\n\r\n")

    house.engine.workers[0].stream(b"second")
    house.clock.advance(5.0)
    assert b"second" not in peer.transport.written
    assert house.registry.find("m").idle
