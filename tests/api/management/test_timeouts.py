"""A timeout of 0 seconds would kill each worker at its first batch: nobody may ask for one."""

import asyncio

import pytest

from tests.api.house import House


@pytest.mark.parametrize(
    ("query", "config", "status", "message"),
    [
        ("&response_timeout=0", "", 400, "response_timeout is '0'; expected more than 0 seconds"),
        ("&startup_timeout=0.0", "", 400, "startup_timeout is '0.0'; expected more than 0 seconds"),
        ("", "responseTimeout: 0", 400, "model-config.yaml: `responseTimeout` is `0`; expected more than 0"),
        ("", "startupTimeout: 0", 400, "model-config.yaml: `startupTimeout` is `0`; expected more than 0"),
    ],
)
def test_a_timeout_of_nothing_is_refused_and_nothing_is_registered(
    house: House, query: str, config: str, status: int, message: str
) -> None:
    house.put("m", config=config)

    told, answer = asyncio.run(house.tell("POST", f"/models?url=m&initial_workers=1{query}"))

    assert told == status and message in str(answer)
    assert list(house.registry) == [] and house.engine.workers == []
