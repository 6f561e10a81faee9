"""The verdict in a version's document: from the last minute's requests, and the learned times of batches."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A daemon with `m`, which takes 300 ms for a request, and has room for many."""
    house = House(tmp_path)
    house.engine.batch_time = lambda size: 0.3
    asyncio.run(house.serve("m", config="batchSize: 1\nbatching: greedy\n"))
    asyncio.run(house.tell("PATCH", "/models/m?queue_jobs=1000"))
    return house


def told(house: House) -> Any:
    status, (document,) = asyncio.run(house.tell("GET", "/models/m"))
    assert status == 200
    return document["tsctl"]["verdict"]


def send(house: House, count: int, every: float) -> None:
    for _ in range(count):
        house.send("POST", "/predictions/m", b"a")
        house.clock.advance(every)


def test_before_any_request_there_is_none(house: House) -> None:
    assert told(house) is None


def test_requests_that_wait_have_come_too(house: House) -> None:
    send(house, 282, 60 / 282)

    assert told(house) == "4.7 requests/s come, one worker can do 3.3: `tsctl scale m 2`"


def test_the_document_of_top_has_it(house: House) -> None:
    send(house, 282, 60 / 282)

    _, document = asyncio.run(house.tell("GET", "/tsctl/live"))

    assert document["models"][0]["verdict"] == "4.7 requests/s come, one worker can do 3.3: `tsctl scale m 2`"


def test_a_worker_that_runs_row_by_row_has_no_known_rate(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    house = House(tmp_path / "rows")
    house.engine.batch_time = lambda size: 0.3
    asyncio.run(house.serve("m", config="continuousBatching: true\nbatchSize: 4\n"))
    send(house, 60, 1.0)

    assert told(house) is None
