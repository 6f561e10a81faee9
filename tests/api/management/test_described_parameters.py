"""What a command takes is what the description of the API says it takes: no more, and no less."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.api.management.commands import Parameters
from tsctl.daemon.http.messages import Request

JSON = "Content-Type: application/json"


class Asked(dict[str, Any]):
    """Values that keep in mind which of them were asked for."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(values)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def asked_for(monkeypatch: pytest.MonkeyPatch, house: House, method: str, target: str) -> set[str]:
    """Return the names of the parameters that a command looks for."""
    names: set[str] = set()
    original = Parameters.__init__

    def remember(self: Parameters, request: Request) -> None:
        original(self, request)
        self._values = asked = Asked(self._values)
        asked.names = names

    with monkeypatch.context() as patched:
        patched.setattr(Parameters, "__init__", remember)
        asyncio.run(house.tell(method, target))
    return names


def described(house: House, path: str, method: str) -> dict[str, Any]:
    _, document = asyncio.run(house.tell("OPTIONS", "/models"))
    parameters = document["paths"][path][method]["parameters"]
    return {each["name"]: each["schema"] for each in parameters if each["in"] == "query"}


@pytest.mark.parametrize(
    ("method", "target", "path"),
    [
        ("POST", "/models?url=n", "/models"),
        ("PATCH", "/models/m?batch_size=2", "/models/{model_name}"),
        ("PUT", "/models/m?min_worker=1", "/models/{model_name}"),
        ("GET", "/models", "/models"),
    ],
)
def test_the_description_has_every_parameter_that_a_command_looks_for(
    method: str, target: str, path: str, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(house.serve("m"))
    house.put("n")

    names = asked_for(monkeypatch, house, method, target)

    assert names == set(described(house, path, method.lower()))


def test_what_can_be_changed_can_be_registered(house: House) -> None:
    registering = described(house, "/models", "post")

    assert described(house, "/models/{model_name}", "patch").items() <= registering.items()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("job_queue_size", 7), ("job_queue_bytes", "1 MiB"), ("client_timeout", 2.5),
        ("retry", False), ("isolate", True), ("max_memory", "4 GiB"), ("cpus", "0"),
    ],
)  # fmt: skip
def test_a_setting_that_is_registered_is_told(name: str, value: Any, house: House) -> None:
    house.put("m")
    body = json.dumps({"url": "m", name: value}).encode()

    status, _ = asyncio.run(house.tell("POST", "/models", body, JSON))

    _, (document,) = asyncio.run(house.tell("GET", "/models/m"))
    told = {each["name"]: each["value"] for each in document["tsctl"]["settings"] if each["origin"] == "register"}
    assert (status, list(told.values())) == (200, [2500.0 if name == "client_timeout" else value])


def test_a_change_is_on_the_disk_when_it_is_answered(house: House, tmp_path: Path) -> None:
    asyncio.run(house.serve("m"))
    asyncio.run(house.tell("PATCH", "/models/m?batch_size=8"))

    (entry,) = json.loads((tmp_path / "snapshot.json").read_text())["models"]
    overrides = entry["request"]["overrides"]
    assert (overrides["batch_size"], overrides["since"]) == (8, {"batch_size": "set"})
