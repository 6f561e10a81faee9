"""`POST /models?replace=true`: what is answered, and what describe tells meanwhile."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error, said, sentence
from tsctl.daemon.models.version import ModelVersion
from tsctl.daemon.workers.engine import LoadFailure


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    asyncio.run(house.serve("m", workers=2))
    return house


def tell(house: House, query: str = "") -> tuple[int, Any]:
    return asyncio.run(house.tell("POST", f"/models?url=m-1.0&replace=true{query}"))


def ours(house: House) -> Any:
    _, (document,) = asyncio.run(house.tell("GET", "/models/m"))
    return document["tsctl"]["replacement"]


def served(house: House) -> ModelVersion:
    return house.registry.find("m")


def test_a_replacement_is_answered_when_it_serves(house: House) -> None:
    old = served(house)

    assert said(tell(house, "&batch_size=4")) == sentence('Model "m" Version: 1.0 replaced with 2 initial workers')

    assert served(house) is not old and served(house).settings.batch_size == 4


def test_replace_is_true_or_false(house: House) -> None:
    status, document = asyncio.run(house.tell("POST", "/models?url=m-1.0&replace=maybe"))

    assert (status, document["message"]) == (400, "replace is 'maybe'; expected true or false.")
    status, document = asyncio.run(house.tell("POST", "/models?url=m-1.0&replace=false"))
    assert (status, document["type"]) == (409, "ConflictStatusException")


def test_a_failure_is_told_and_the_old_one_stays(house: House) -> None:
    old = served(house)
    house.engine.load_failure = LoadFailure("ValueError: no", "Traceback: here")

    message = "Failed to start workers for model m version: 1.0: ValueError: no\n\nTraceback: here"
    assert tell(house) == error(500, "InternalServerException", message)

    assert served(house) is old and ours(house) == {
        "state": "failed",
        "url": "m-1.0",
        "ready": 0,
        "wanted": 0,
        "error": {"message": message.partition("\n")[0], "traceback": "Traceback: here"},
    }


async def begin(house: House) -> tuple[int, Any]:
    """Begin a replacement that goes on loading, and do not wait for it."""
    house.engine.load_time = 100.0
    return await house.tell("POST", "/models?url=m-1.0&replace=true&synchronous=false")


async def test_without_waiting_describe_tells_how_far_it_is(house: House) -> None:
    assert said(await begin(house)) == sentence("Processing worker updates...", 202)

    (_, [described]) = await house.tell("GET", "/models/m")

    told = described["tsctl"]["replacement"]
    assert told == {"state": "loading", "url": "m-1.0", "ready": 0, "wanted": 2, "error": None}


async def test_another_one_meanwhile_is_a_conflict(house: House) -> None:
    await begin(house)

    another = await house.tell("POST", "/models?url=m-1.0&replace=true")

    message = "Model version 1.0 of model m is being replaced. Try again after the replacement: "
    assert another == error(409, "ConflictStatusException", f"{message}`tsctl describe m/1.0` shows its progress.")


async def test_what_was_replaced_and_still_finishes_is_told(house: House) -> None:
    house.engine.batch_time = lambda size: 10.0
    house.send("POST", "/predictions/m")
    await house.tell("POST", "/models?url=m-1.0&replace=true")

    (_, [described]) = await house.tell("GET", "/models/m")

    assert described["tsctl"]["replacement"] == {"state": "finishing", "url": "m-1.0", "queued": 0, "running": 1}


def test_the_description_of_the_api_has_it(house: House) -> None:
    _, document = asyncio.run(house.tell("OPTIONS", "/models"))

    parameters = {each["name"]: each for each in document["paths"]["/models"]["post"]["parameters"]}
    assert parameters["replace"] == {"name": "replace", "in": "query", "schema": {"type": "boolean"}}
    assert parameters["url"]["required"] is True
