"""Two ask for workers of one model at the same time: each is told what is true for them, 206 included."""

import json
from typing import Any

import pytest

from tests.api.house import House, said, sentence

IN_PROGRESS = sentence("Workers scaling in progress...", 206)


@pytest.mark.parametrize(
    ("more", "answer"),
    [
        pytest.param("min_worker=3", IN_PROGRESS, id="more are asked for meanwhile"),
        pytest.param("min_worker=1", sentence("Workers scaled to 1 for model: m"), id="fewer are asked for meanwhile"),
    ],
)
async def test_who_scaled_is_answered_when_theirs_have_come_up(
    house: House, more: str, answer: tuple[int, Any]
) -> None:
    await house.serve("m", workers=0)
    house.engine.load_time = 1.0
    first = house.send("PUT", "/models/m?min_worker=2&synchronous=true")
    await house.until(lambda: len(house.engine.workers) == 2)
    house.engine.load_time = 5.0
    await house.ask("PUT", f"/models/m?{more}")
    assert first.answers == []
    house.clock.advance(1.0)
    await house.until(lambda: first.answers)

    assert (first.statuses[0], json.loads(first.bodies[0])) == answer


async def test_who_registered_is_told_of_workers_that_another_has_asked_for(house: House) -> None:
    house.put("m")
    house.engine.load_time = 1.0

    first = house.send("POST", "/models?url=m&initial_workers=1")
    await house.until(lambda: house.engine.workers)
    house.engine.load_time = 5.0
    await house.ask("PUT", "/models/m?min_worker=2")
    house.clock.advance(1.0)
    await house.until(lambda: first.answers)

    assert said((first.statuses[0], json.loads(first.bodies[0]))) == IN_PROGRESS
