"""The answer to a registration with `warnings=true`: the settings in force, and what a replacement did to them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, sentence
from tsctl.daemon.models.change import change_settings
from tsctl.handlers.wire import Declared, Input


def register(house: House, query: str) -> tuple[int, dict[str, Any]]:
    return asyncio.run(house.tell("POST", f"/models?url=m-1.0&initial_workers=1&warnings=true{query}"))


def replace(house: House, query: str = "") -> dict[str, Any]:
    _, document = asyncio.run(house.tell("POST", f"/models?url=m-1.0&replace=true&warnings=true{query}"))
    assert isinstance(document, dict)
    return document


def test_a_registration_tells_the_settings_in_force(house: House) -> None:
    house.put("m", config="batchSize: 4", place="m-1.0")

    _, document = register(house, "&max_batch_delay=2.5")

    assert document == {
        "status": 'Model "m" Version: 1.0 registered with 1 initial workers',
        "modelName": "m", "modelVersion": "1.0", "handler": "image_classifier",
        "batchSize": 4, "maxBatchDelay": 2.5, "batching": "auto",
        "notes": [], "replaced": False, "changed": [], "kept": [], "mostRows": 0, "alone": False,
        "workers": 1, "onDemand": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "alone"),
    [
        pytest.param(Declared([Input("text", "text")], batches=False), True, id="of one value"),
        pytest.param(Declared([Input("text", "text")], batches=True), False, id="of lists"),
        pytest.param(Declared([Input("text", "text")], batches=False, waits=True), False, id="a coroutine"),
        pytest.param(Declared([Input("text", "text")], batches=False, streams=True), False, id="answers in pieces"),
    ],
)
def test_a_function_that_takes_one_request_after_the_other_is_told(
    house: House, declared: Declared, alone: bool
) -> None:
    house.put("m", place="m-1.0")
    house.engine.declared = declared

    assert register(house, "&batch_size=4")[1]["alone"] is alone


def test_a_replacement_tells_what_it_changed_and_kept(house: House) -> None:
    house.put("m", place="m-1.0")
    register(house, "&batch_size=8&max_batch_delay=20")
    change_settings(house.registry.find("m"), {"queue_jobs": 7})

    document = replace(house, "&max_batch_delay=5")

    assert document["replaced"] and document["batchSize"] == 8
    assert document["changed"] == [{"setting": "maxBatchDelay", "before": 20.0, "after": 5.0}]
    assert document["kept"] == ["batchSize", "minWorkers", "jobQueueSize"]


def test_a_replacement_without_a_difference_says_so(house: House) -> None:
    house.put("m", place="m-1.0")
    register(house, "&batch_size=8")

    assert replace(house)["changed"] == []


def test_a_reset_tells_what_it_changed_and_keeps_nothing(house: House) -> None:
    house.put("m", place="m-1.0")
    register(house, "&batch_size=8")

    document = replace(house, "&reset=true&fallback_workers=1")

    assert document["changed"] == [{"setting": "batchSize", "before": 8, "after": 1}]
    assert document["kept"] == []


def test_only_a_replacement_can_reset(house: House) -> None:
    house.put("m", place="m-1.0")

    status, document = register(house, "&reset=true")

    message = "reset is true, but only a replacement has settings to reset: add replace=true."
    assert (status, document["message"]) == (400, message)


@pytest.mark.parametrize("own", [True, False])
def test_a_client_of_torchserve_is_answered_as_by_torchserve(own: bool, tmp_path: Path) -> None:
    house = House(tmp_path, own=own)
    house.put("m", place="m-1.0")

    answer = asyncio.run(house.tell("POST", "/models?url=m-1.0&initial_workers=1"))

    assert answer == sentence('Model "m" Version: 1.0 registered with 1 initial workers')


def test_an_ephemeral_version_says_so_and_goes_with_its_owner_only(house: House) -> None:
    house.put("m", place="m-1.0")
    register(house, "&ephemeral=true&owner=abc")

    _, (described,) = asyncio.run(house.tell("GET", "/models/m"))
    refused, _ = asyncio.run(house.tell("DELETE", "/models/m?owner=xyz"))
    done, _ = asyncio.run(house.tell("DELETE", "/models/m?owner=abc"))

    assert described["tsctl"]["ephemeral"] is True and "abc" not in str(described)
    assert (refused, done) == (409, 200)


def test_an_endless_owner_is_refused(house: House) -> None:
    house.put("m", place="m-1.0")

    status, document = register(house, f"&owner={'a' * 201}")

    assert (status, document["message"]) == (400, "owner has 201 characters; at most 200 are allowed.")
