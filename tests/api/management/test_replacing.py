"""`POST /models?replace=true`: what is answered, and what describe tells meanwhile."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    asyncio.run(house.serve("m", workers=2))
    return house


def tell(house: House, query: str = "") -> tuple[int, Any]:
    return asyncio.run(house.tell("POST", f"/models?url=m-1.0&replace=true{query}"))


def test_the_description_of_the_api_has_it(house: House) -> None:
    _, document = asyncio.run(house.tell("OPTIONS", "/models"))

    parameters = {each["name"]: each for each in document["paths"]["/models"]["post"]["parameters"]}
    assert parameters["replace"] == {"name": "replace", "in": "query", "schema": {"type": "boolean"}}
    assert parameters["url"]["required"] is True
