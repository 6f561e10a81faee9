"""`POST /models/MODEL/VERSION/restart`: new workers in place of the old ones, and what is answered."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error, sentence
from tsctl.daemon.workers.engine import LoadFailure


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    asyncio.run(house.serve("m", workers=2))
    return house


def tell(house: House, target: str = "/models/m/1.0/restart", method: str = "POST") -> tuple[int, Any]:
    return asyncio.run(house.tell(method, target))


def workers(house: House) -> list[Any]:
    return [each["pid"] for each in tell(house, "/models/m", "GET")[1][0]["workers"]]


def test_it_is_answered_when_all_new_workers_are_ready(house: House) -> None:
    before = workers(house)

    assert tell(house) == sentence('Model "m" Version: 1.0 restarted, 2 of 2 workers ready')

    assert len(workers(house)) == 2 and not set(before) & set(workers(house))


def test_without_waiting_it_is_answered_at_once_and_the_old_workers_serve(house: House) -> None:
    before = workers(house)
    house.engine.load_time = 100.0

    assert tell(house, "/models/m/1.0/restart?synchronous=false") == sentence("Processing worker updates...", 202)

    assert workers(house) == before


def test_what_was_set_meanwhile_is_kept(house: House) -> None:
    tell(house, "/models/m?batch_size=7", "PATCH")
    tell(house, "/models/m?min_worker=3&synchronous=true", "PUT")

    assert tell(house) == sentence('Model "m" Version: 1.0 restarted, 3 of 3 workers ready')

    assert tell(house, "/models/m", "GET")[1][0]["batchSize"] == 7


def test_new_workers_that_do_not_load_leave_the_old_ones(house: House) -> None:
    before = workers(house)
    house.engine.load_failure = LoadFailure("ValueError: no", "Traceback: here")

    message = "Failed to start workers for model m version: 1.0: ValueError: no\n\nTraceback: here"
    assert tell(house) == error(500, "InternalServerException", message)
    assert workers(house) == before


def test_without_workers_there_is_nothing_to_restart(house: House) -> None:
    tell(house, "/models/m?min_worker=0&synchronous=true", "PUT")

    assert tell(house) == error(409, "ConflictStatusException", 'Model "m" Version: 1.0 has no workers to restart.')


@pytest.mark.parametrize("target", ["/models/x/1.0/restart", "/models/m/9/restart"])
def test_what_is_not_registered_is_not_found(house: House, target: str) -> None:
    assert tell(house, target)[0] == 404
