"""`PATCH /models/MODEL[/VERSION]` changes how a model is served, and says from what to what."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
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
