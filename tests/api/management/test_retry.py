"""`POST /models/MODEL/VERSION/retry`: what is answered."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error, sentence
from tsctl.daemon.workers.engine import LoadFailure

BROKEN = LoadFailure("ValueError: no", "Traceback: here")


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A house whose only version has failed, and would load now."""
    house = House(tmp_path)
    house.engine.load_failure = BROKEN
    asyncio.run(house.serve("m", workers=2))
    house.engine.load_failure = None
    return house


def tell(house: House, target: str = "/models/m/1.0/retry", method: str = "POST") -> tuple[int, Any]:
    return asyncio.run(house.tell(method, target))


def ours(house: House) -> Any:
    return tell(house, "/models/m", "GET")[1][0]["tsctl"]


def test_it_is_answered_when_it_has_its_workers(house: House) -> None:
    assert ours(house)["retryable"] is True

    assert tell(house) == sentence('Model "m" Version: 1.0 tried again, 2 of 2 workers ready')

    assert (ours(house)["state"], ours(house)["retryable"], ours(house)["error"]) == ("ready", False, None)


def test_without_waiting_it_is_answered_at_once(house: House) -> None:
    house.engine.load_time = 100.0

    assert tell(house, "/models/m/1.0/retry?synchronous=false") == sentence("Processing worker updates...", 202)

    assert ours(house)["state"] == "loading"


def test_a_second_failure_is_told_with_its_traceback(house: House) -> None:
    house.engine.load_failure = BROKEN

    message = "Failed to start workers for model m version: 1.0: ValueError: no\n\nTraceback: here"
    assert tell(house) == error(500, "InternalServerException", message)


def test_one_that_has_not_failed_is_a_conflict(house: House) -> None:
    tell(house)

    message = "Model version 1.0 of model m has not failed (state: ready); nothing to retry."
    assert tell(house) == error(409, "ConflictStatusException", message)


@pytest.mark.parametrize(
    ("target", "method", "status"),
    [
        pytest.param("/models/x/1.0/retry", "POST", 404, id="no such model"),
        pytest.param("/models/m/9/retry", "POST", 404, id="no such version"),
        pytest.param("/models/m/1.0/retry", "GET", 404, id="asking changes nothing"),
    ],
)
def test_what_is_not_there_is_not_tried(house: House, target: str, method: str, status: int) -> None:
    assert tell(house, target, method)[0] == status
    assert ours(house)["state"] == "failed"


def test_the_description_of_the_api_has_it(house: House) -> None:
    _, document = asyncio.run(house.tell("OPTIONS", "/models"))

    command = document["paths"]["/models/{model_name}/{model_version}/retry"]["post"]
    assert [each["name"] for each in command["parameters"]] == ["model_name", "model_version", "synchronous"]
