"""The history of all versions in a daemon: made by a timer, asked for on the control socket, kept by an upgrade."""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.api.house import House, error
from tsctl.daemon.extensions.history.course import EVERY, HistoryService


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A daemon that has looked three times: `m` has answered two requests before the second look, then one."""
    house = House(tmp_path)

    async def begin() -> None:
        await house.serve("m")
        await house.serve("n")
        house.service(HistoryService).begin()
        for requests in (0, 2, 1):
            for _ in range(requests):
                house.send("POST", "/predictions/m", b"a")
                house.clock.advance(0.1)
            house.clock.advance(EVERY - requests * 0.1)

    asyncio.run(begin())
    return house


def ask(house: House, target: str) -> Any:
    status, document = asyncio.run(house.tell("GET", target))
    assert status == 200, document
    return document


def test_every_ten_seconds_are_a_sample_of_each_version(house: House) -> None:
    document = ask(house, "/tsctl/history")

    assert document["every"] == EVERY
    m, n = document["models"]
    assert (m["name"], m["version"], m["requestsPerSecond"]) == ("m", "1.0", [0.2, 0.1])
    assert (n["name"], n["requestsPerSecond"], n["p99Ms"]) == ("n", [0.0, 0.0], [None, None])


@pytest.mark.parametrize(("named", "version"), [("m", "1.0"), ("m/2.0", "2.0")])
def test_one_version_can_be_asked_for(house: House, named: str, version: str) -> None:
    asyncio.run(house.serve("m", "2.0"))

    (model,) = ask(house, f"/tsctl/history?model={named}")["models"]

    assert (model["name"], model["version"]) == ("m", version)


def test_a_version_that_is_gone_is_forgotten(house: House) -> None:
    asyncio.run(house.tell("DELETE", "/models/m"))
    house.clock.advance(EVERY)

    assert [each["name"] for each in ask(house, "/tsctl/history")["models"]] == ["n"]
    missing = error(404, "ModelNotFoundException", "Model not found: m")
    assert asyncio.run(house.tell("GET", "/tsctl/history?model=m")) == missing


def test_the_daemon_that_takes_over_goes_on_with_it(house: House, tmp_path: Path) -> None:
    service = house.service(HistoryService)
    assert service.keep(last=False) is None
    kept = msgspec.json.decode(msgspec.json.encode(service.keep(last=True)))  # as the snapshot is written
    (tmp_path / "other").mkdir()
    other = House(tmp_path / "other")
    other.service(HistoryService).restore(kept)

    for name in ("m", "n"):
        asyncio.run(other.serve(name))

    assert ask(other, "/tsctl/history") == ask(house, "/tsctl/history")


def test_what_is_older_than_fifteen_minutes_is_not_taken_up(house: House) -> None:
    now = time.time()
    rows = [[now - age, 1.0, 0.0, None, None, 0.0] for age in (2000.0, 901.0, 890.0)]

    house.service(HistoryService).restore({"o": {"1.0": rows}})
    asyncio.run(house.serve("o"))

    assert len(ask(house, "/tsctl/history?model=o")["models"][0]["time"]) == 1


@pytest.mark.parametrize("kept", [[], {"m": 1}, {"m": {"1.0": [[1.0]]}}, {"m": {"1.0": [["x"] * 6]}}])
def test_what_another_program_has_written_is_refused(house: House, kept: Any) -> None:
    with pytest.raises(ValueError):
        house.service(HistoryService).restore(kept)
