"""A client that accepts lines of JSON is told the progress; what was begun goes on without it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error, said, sentence
from tsctl.daemon.workers.engine import LoadFailure

LINES = "Accept: application/x-ndjson"


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.put("m")
    return house


def follow(house: House, method: str, target: str) -> list[dict[str, Any]]:
    """The events of a command."""
    answer = asyncio.run(house.ask(method, target, b"", LINES))
    assert (answer.status, answer.headers["content-type"]) == (200, "application/x-ndjson")
    return [json.loads(line) for line in answer.body.splitlines()]


def done(told: tuple[int, Any]) -> dict[str, Any]:
    return {"stage": "done", "status": told[0], "document": told[1]}


def test_registering_tells_how_many_workers_are_ready(house: House) -> None:
    events = follow(house, "POST", "/models?url=m&initial_workers=2")

    counts = [(event["done"], event["total"]) for event in events[:-1]]
    assert {event["stage"] for event in events[:-1]} == {"loading"}
    assert (counts[0], counts[-1]) == ((0, 2), (2, 2))
    assert counts == sorted(counts)
    told = said((events[-1]["status"], events[-1]["document"]))
    assert told == sentence('Model "m" Version: 1.0 registered with 2 initial workers')


def test_scaling_tells_how_many_workers_are_ready(house: House) -> None:
    asyncio.run(house.ask("POST", "/models?url=m"))

    events = follow(house, "PUT", "/models/m?min_worker=1&synchronous=true")

    assert {"stage": "loading", "done": 1, "total": 1} in events
    assert events[-1] == done(sentence("Workers scaled to 1 for model: m"))


def test_a_failure_is_the_last_line(house: House) -> None:
    house.engine.load_failure = LoadFailure("ValueError: no")

    events = follow(house, "POST", "/models?url=m&initial_workers=1")

    message = "Failed to start workers for model m version: 1.0: ValueError: no"
    assert events[-1] == done(error(500, "InternalServerException", message))


def test_a_command_that_is_wrong_is_refused_at_once(house: House) -> None:
    told = asyncio.run(house.tell("POST", "/models", b"", LINES))

    assert told == error(400, "BadRequestException", "Parameter url is required.")


async def test_what_was_begun_goes_on_when_its_client_leaves(house: House) -> None:
    house.engine.load_time = 5.0

    peer = house.send("POST", "/models?url=m&initial_workers=1", b"", LINES)
    await house.until(lambda: b'"stage": "loading"' in peer.transport.written)
    peer.leave()
    house.clock.advance(5.0)
    await asyncio.sleep(0)

    assert house.registry.find("m").pool.ready == 1
