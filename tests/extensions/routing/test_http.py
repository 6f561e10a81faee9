"""`/models/MODEL/route`: set, shown and removed, by query and as JSON; shown by describe, status, live and metrics."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House, error, sentence
from tsctl.daemon.server.extensions import EXTENSIONS


async def serving(tmp_path: Path) -> House:
    house = House(tmp_path)
    for version in ("1.0", "2.0"):
        await house.serve("m", version)
    return house


async def test_a_route_is_set_shown_and_removed(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    told = await house.tell("PUT", "/models/m/route?weights=1.0%3D90+2.0%3D10&sticky=ip")
    assert told == sentence('Requests for model "m" are routed: 1.0=90 2.0=10, sticky by address')
    shown = {"modelName": "m", "default": "1.0", "route": {"weights": {"1.0": 90, "2.0": 10}, "sticky": "ip"}}
    assert await house.tell("GET", "/models/m/route") == (200, shown)

    told = await house.tell("DELETE", "/models/m/route")
    assert told == sentence('Model "m" has no route: version 1.0 answers')
    assert await house.tell("GET", "/models/m/route") == (200, shown | {"route": None})


@pytest.mark.parametrize(
    "route",
    [
        {"weights": {"1.0": 90, "2.0": 2.5}, "sticky": "header:x-user"},
        pytest.param(
            {"weights": {"1.0": 1}, "shadow": "2.0", "sample": 0.05, "allow_effects": True},
            marks=pytest.mark.skipif(
                "shadowing" not in {each.name for each in EXTENSIONS}, reason="built without shadows"
            ),
        ),
    ],
    ids=["weights", "a shadow"],
)
async def test_what_is_shown_can_be_set_again(tmp_path: Path, route: dict[str, Any]) -> None:
    house = await serving(tmp_path)

    body = json.dumps(route).encode()
    status, _ = await house.tell("PUT", "/models/m/route", body, "Content-Type: application/json")
    _, shown = await house.tell("GET", "/models/m/route")

    assert (status, shown["route"]) == (200, route)


@pytest.mark.parametrize(
    ("method", "target", "answer"),
    [
        pytest.param(
            "PUT", "/models/m/route",
            error(400, "BadRequestException", "weights is missing; expected VERSION=WEIGHT, such as 1.0=90,2.0=10."),
            id="without weights",
        ),
        pytest.param(
            "PUT", "/models/m/route?weights=1.0%3D1+9%3D1",
            error(404, "ModelVersionNotFoundException",
                  "Model version 9 does not exist for model m; register it first."),
            id="an unknown version",
        ),
        pytest.param(
            "GET", "/models/n/route", error(404, "ModelNotFoundException", "Model not found: n"), id="an unknown model",
        ),
        pytest.param(
            "POST", "/models/m/route",
            error(405, "MethodNotAllowedException",
                  "Requested method is not allowed, please refer to API document."),
            id="another method",
        ),
    ],
)  # fmt: skip
async def test_what_is_refused(tmp_path: Path, method: str, target: str, answer: tuple[int, object]) -> None:
    house = await serving(tmp_path)
    assert await house.tell(method, target) == answer


async def test_a_version_with_a_weight_is_409(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    await house.tell("PUT", "/models/m/route?weights=1.0%3D90+2.0%3D10")

    status, document = await house.tell("DELETE", "/models/m/2.0")

    assert (status, document["message"]) == (
        409,
        "The route of model m sends 10% of the requests to version 2.0. Take them away first: `tsctl route m` with"
        " other versions, or `tsctl default m/VERSION`, which removes the route.",
    )


async def test_a_default_version_removes_the_route(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    await house.tell("PUT", "/models/m/route?weights=1.0%3D90+2.0%3D10")

    await house.tell("PUT", "/models/m/2.0/set-default")
    _, shown = await house.tell("GET", "/models/m/route")

    assert shown == {"modelName": "m", "default": "2.0", "route": None}


async def test_shares_are_shown_of_a_model_with_a_route_only(tmp_path: Path) -> None:
    house = await serving(tmp_path)
    await house.serve("other")
    await house.tell("PUT", "/models/m/route?weights=1.0%3D90+2.0%3D10")

    _, described = await house.tell("GET", "/models/m/all")
    _, live = await house.tell("GET", "/tsctl/live")
    metrics = (await house.ask("GET", "/metrics")).body.decode()

    assert [each["tsctl"]["share"] for each in described] == [0.9, 0.1]
    assert described[0]["tsctl"]["route"] == {"weights": {"1.0": 90, "2.0": 10}}
    assert [(each.get("share"), each.get("shadow")) for each in live["models"]] == [
        (0.9, False), (0.1, False), (None, None),
    ]  # fmt: skip
    assert [line for line in metrics.splitlines() if line.startswith("tsctl_route_share")] == [
        'tsctl_route_share{model="m",version="1.0"} 0.9', 'tsctl_route_share{model="m",version="2.0"} 0.1',
    ]  # fmt: skip
