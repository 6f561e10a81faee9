"""`POST /models/MODEL/VERSION/load` and `/unload`, and what a description tells about a model that comes and goes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.kit.protocols import PROTOCOLS
from tsctl.daemon.extensions.residency.residence import residence_of


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.put("m", config="loading: on_demand\nminWorkers: 2\nkeepAlive: 1m")
    asyncio.run(house.tell("POST", "/models?url=m"))
    return house


def residence(house: House) -> Any:
    _, (document,) = asyncio.run(house.tell("GET", "/models/m"))
    return document["tsctl"]["residence"]


def test_a_registered_model_is_not_loaded_and_says_so(house: House) -> None:
    found = residence(house)

    assert (found["state"], found["onDemand"], found["held"], found["loads"]) == ("unloaded", True, False, {})


def test_the_registration_says_that_the_first_request_loads_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    house.put("m", config="loading: on_demand")

    status, document = asyncio.run(house.tell("POST", "/models?url=m"))

    assert (status, document["status"]) == (200, 'Model "m" Version: 1.0 registered; the first request loads it')


def test_an_operator_loads_and_unloads(house: House) -> None:
    status, document = asyncio.run(house.tell("POST", "/models/m/1.0/unload"))
    assert (status, document["status"]) == (200, 'Model "m" Version: 1.0 unloaded; no request loads it')
    assert (residence(house)["state"], residence(house)["held"]) == ("held", True)

    status, document = asyncio.run(house.tell("POST", "/models/m/1.0/load?synchronous=false"))

    assert status == 202
    assert (residence(house)["held"], residence(house)["loads"]) == (False, {"operator": 1})


@pytest.mark.parametrize("action", ["load", "unload"])
def test_an_unknown_model_is_not_found(house: House, action: str) -> None:
    status, document = asyncio.run(house.tell("POST", f"/models/no/1.0/{action}"))

    assert (status, document["message"]) == (404, "Model not found: no")


async def test_a_handlers_own_metadata_loads_the_model(house: House) -> None:
    asking = asyncio.ensure_future(house.ask("GET", "/models/m?customized=true"))
    model = house.registry.find("m")

    await house.until(lambda: residence_of(model).loads["request"] == 1 or asking.done())

    assert residence_of(model).loads == {"request": 1}
    asking.cancel()


async def test_a_model_that_can_be_asked_is_ready_and_a_held_one_is_not(house: House) -> None:
    asked = ["/ready", "/ready/m", *(target for each in PROTOCOLS for target in each.ready)]
    assert (await house.tell("GET", "/v1/models/m"))[1]["ready"]
    assert {(await house.tell("GET", each))[0] for each in asked} == {200}

    await house.tell("POST", "/models/m/1.0/unload")

    assert {(await house.tell("GET", each))[0] for each in asked} == {503}
