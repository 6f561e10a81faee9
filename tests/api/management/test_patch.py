"""`PATCH /models/MODEL[/VERSION]` changes how a model is served, and says from what to what."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error
from tsctl.daemon.tables import MODEL_SETTINGS

JSON = "Content-Type: application/json"


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    asyncio.run(house.serve("m", config="batchSize: 2"))
    return house


def patch(house: House, target: str, body: Any = None) -> tuple[int, Any]:
    if body is None:
        return asyncio.run(house.tell("PATCH", target))
    return asyncio.run(house.tell("PATCH", target, json.dumps(body).encode(), JSON))


def refused(message: str) -> tuple[int, Any]:
    return error(400, "BadRequestException", message)


def origins(house: House) -> dict[str, tuple[Any, str]]:
    _, (document,) = asyncio.run(house.tell("GET", "/models/m"))
    return {each["name"]: (each["value"], each["origin"]) for each in document["tsctl"]["settings"]}


def test_the_answer_tells_what_was_and_what_is(house: House) -> None:
    status, document = patch(house, "/models/m?batch_size=8&max_batch_delay=2.5&batching=fixed")

    assert status == 200
    assert document == {
        "status": 'Model "m" Version: 1.0 changed: batchSize from 2 to 8, maxBatchDelay from 100 to 2.5,'
        " batching from auto to fixed",
        "modelName": "m",
        "modelVersion": "1.0",
        "changes": [
            {"name": "batchSize", "from": 2, "to": 8},
            {"name": "maxBatchDelay", "from": 100.0, "to": 2.5},
            {"name": "batching", "from": "auto", "to": "fixed"},
        ],
    }
    settings = house.registry.find("m").settings
    assert (settings.batch_size, settings.max_delay, settings.policy) == (8, 0.0025, "fixed")


def test_json_sets_the_version_that_is_named(house: House) -> None:
    body = {"response_timeout": 5, "startup_timeout": 6, "job_queue_size": 9, "quarantine": False}

    status, document = patch(house, "/models/m/1.0", body)

    assert status == 200
    assert {each["name"]: each["to"] for each in document["changes"]} == {
        "responseTimeout": 5.0,
        "startupTimeout": 6.0,
        "jobQueueSize": 9,
        "quarantine": False,
    }


def test_describe_says_that_it_was_set(house: House) -> None:
    assert origins(house)["batchSize"] == (2, "model-config.yaml")

    patch(house, "/models/m?batch_size=8")

    assert origins(house)["batchSize"] == (8, "set")
    assert origins(house)["maxBatchDelay"] == (100.0, "default")


def test_it_is_on_the_disk_when_it_is_answered(house: House, tmp_path: Path) -> None:
    patch(house, "/models/m?batch_size=8")

    (entry,) = json.loads((tmp_path / "snapshot.json").read_text())["models"]
    assert (entry["request"]["wishes"]["batch_size"], entry["request"]["wishes"]["since"]) == (8, {"batch_size": "set"})


def test_the_description_of_the_api_has_the_parameters(house: House) -> None:
    _, document = asyncio.run(house.tell("OPTIONS", "/models"))

    command = document["paths"]["/models/{model_name}"]["patch"]
    kinds = {each["name"]: each["schema"]["type"] for each in command["parameters"] if each["in"] == "query"}
    assert list(kinds) == NAMES.split(", ")
    assert (kinds["batch_size"], kinds["queue_timeout"], kinds["batching"]) == ("integer", "number", "string")
    assert (kinds["job_queue_bytes"], kinds["group_by_length"]) == ("string", "boolean")


NAMES = ", ".join(row.rest for row in MODEL_SETTINGS if row.rest and row.changes)


@pytest.mark.parametrize(
    ("target", "body", "sentence"),
    [
        pytest.param("/models/m", None, f"No change is requested. Changeable: {NAMES}.", id="nothing"),
        pytest.param("/models/m", {"batch_size": None}, f"No change is requested. Changeable: {NAMES}.", id="null"),
        pytest.param(
            "/models/m?batch_size=8&min_worker=2", None,
            f"min_worker cannot be changed while the model serves. Changeable: {NAMES}."
            " Scale workers with PUT; other settings take a new registration.",
            id="what cannot be changed",
        ),
        pytest.param(
            "/models/m?retry=true", None,
            f"retry cannot be changed while the model serves. Changeable: {NAMES}."
            " The setting is fixed when a worker starts; a change takes new workers: `tsctl register --replace`.",
            id="what a worker is made of",
        ),
        pytest.param(
            "/models/m?batch_size=0", None, "batch_size is '0'; expected a whole number of at least 1.",
            id="a batch of nothing",
        ),
        pytest.param(
            "/models/m", {"batch_size": -1}, "batch_size is -1; expected a whole number of at least 1.",
            id="what TorchServe takes for not given",
        ),
        pytest.param(
            "/models/m", {"max_batch_delay": -1}, "max_batch_delay is -1; expected a number from 0 to 1e9.",
            id="a negative delay",
        ),
        pytest.param(
            "/models/m?quarantine=perhaps", None, "quarantine is 'perhaps'; expected true or false.",
            id="neither true nor false",
        ),
        pytest.param(
            "/models/m?batch_size=8&batching=eager", None,
            "batching is 'eager'; expected one of auto, fixed, greedy.",
            id="an unknown policy",
        ),
    ],
)  # fmt: skip
def test_what_is_refused_changes_nothing(house: House, target: str, body: Any, sentence: str) -> None:
    before = house.registry.find("m").settings

    assert patch(house, target, body) == refused(sentence)
    assert house.registry.find("m").settings == before
