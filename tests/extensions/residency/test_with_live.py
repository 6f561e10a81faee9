"""Versions that come and go in `/tsctl/live`: when they will be unloaded, and the budget of memory."""

import asyncio
from pathlib import Path

import pytest

from tests.api.house import House


def test_a_model_that_comes_and_goes_is_shown_with_its_end(tmp_path: Path) -> None:
    house = House(tmp_path, models_memory="1GiB")
    house.put("m", config="loading: on_demand\nkeepAlive: 1m")

    async def begin() -> None:
        await house.tell("POST", "/models?url=m")
        house.send("POST", "/predictions/m", b"a")
        house.clock.advance(1.0)

    asyncio.run(begin())
    _, document = asyncio.run(house.tell("GET", "/tsctl/live"))
    residence = document["models"][0]["residence"]

    assert (residence["state"], residence["reason"], residence["pinned"]) == ("loaded", "request", False)
    assert residence["unloadsAt"] - residence["lastUsed"] == pytest.approx(60.0, abs=0.01)
    assert document["memory"]["budget"] == {"host": 2**30}
    assert 0 < document["memory"]["used"]["host"] < 2**30, "the size of its files, before it was measured"
