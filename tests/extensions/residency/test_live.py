"""Versions that come and go in `/tsctl/live`: when they will be unloaded, and the budget of memory."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House


def ask(house: House, target: str) -> Any:
    status, document = asyncio.run(house.tell("GET", target))
    assert status == 200, document
    return document


def test_a_model_that_comes_and_goes_is_shown_with_its_end(tmp_path: Path) -> None:
    house = House(tmp_path, models_memory="1GiB")
    house.put("m", config="loading: on_demand\nkeepAlive: 1m")

    async def begin() -> None:
        await house.tell("POST", "/models?url=m")
        house.send("POST", "/predictions/m", b"a")
        house.clock.advance(1.0)

    asyncio.run(begin())
    document = ask(house, "/tsctl/live")
    residence = document["models"][0]["residence"]

    assert (residence["state"], residence["reason"], residence["pinned"]) == ("loaded", "request", False)
    assert residence["unloadsAt"] - residence["lastUsed"] == pytest.approx(60.0, abs=0.01)
    assert document["memory"]["budget"] == {"host": 2**30}
    assert 0 < document["memory"]["used"]["host"] < 2**30, "the size of its files, before it was measured"


def test_a_loaded_model_that_stays_has_no_end(house: House) -> None:
    house.put("m", config="loading: on_demand\npinned: true")
    asyncio.run(house.tell("POST", "/models?url=m"))
    asyncio.run(house.tell("POST", "/models/m/1.0/load?synchronous=false"))
    house.clock.advance(1.0)

    residence = ask(house, "/tsctl/live")["models"][0]["residence"]

    assert (residence["state"], residence["reason"], residence["unloadsAt"]) == ("loaded", "operator", None)
    assert (residence["pinned"], residence["lastUsed"]) == (True, None)
