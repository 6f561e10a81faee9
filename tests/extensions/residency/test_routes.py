"""`POST /models/MODEL/VERSION/load` and `/unload`, and what a description tells about a model that comes and goes."""

import asyncio
from pathlib import Path

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
