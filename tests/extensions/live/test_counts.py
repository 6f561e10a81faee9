"""The control socket shows the counts of all versions, and the latest batches of one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Reply
from tsctl.daemon.metrics.histogram import FINE


def ask(house: House, target: str) -> Any:
    status, document = asyncio.run(house.tell("GET", target))
    assert status == 200, document
    return document


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A daemon with a model that has answered two requests, one of them with an error, in one batch."""
    house = House(tmp_path)

    async def begin() -> None:
        await house.serve("m", config="batchSize: 4\nmaxBatchDelay: 20\nbatching: fixed\n")
        house.engine.batch_time = lambda size: 0.05
        house.engine.answer = lambda job: (
            Reply(500, b"no", error="E") if job.params[0].value == b"b" else Reply(200, b"")
        )
        for body in (b"a", b"b"):
            house.send("POST", "/predictions/m", body)
        house.clock.advance(1.0)

    asyncio.run(begin())
    return house


def test_answers_and_batches_are_counted(house: House) -> None:
    (model,) = ask(house, "/tsctl/live")["models"]

    assert model["requests"] == {"total": 2, "codes": {"200": 1, "500": 1}, "errors": 1}
    assert model["batches"] == {"total": 1, "requests": 2}
    assert model["latency"]["bounds"] == list(FINE)
    assert sum(model["latency"]["counts"]) == 2 and model["latency"]["sum"] == pytest.approx(0.14, abs=0.001)
    assert (model["batchSize"], model["maxBatchDelay"], model["policy"]) == (4, 20, "fixed")


def test_what_is_learned_of_sizes_is_told_as_by_the_describe_document(house: House) -> None:
    (model,) = ask(house, "/tsctl/live")["models"]
    (described,) = ask(house, "/models/m")

    assert model["learned"] == {name: described["tsctl"]["batching"]["learned"][name] for name in ("bestSize", "sizes")}


def test_the_age_of_the_daemon_is_on_its_own_clock(house: House) -> None:
    before = ask(house, "/tsctl/live")["upSeconds"]
    house.clock.advance(5.0)

    assert ask(house, "/tsctl/live")["upSeconds"] == pytest.approx(before + 5.0)


def test_the_troubles_are_those_of_the_describe_document(house: House) -> None:
    (live,) = ask(house, "/tsctl/live")["models"]
    (described,) = ask(house, "/models/m")

    assert live["troubles"] == described["tsctl"]["troubles"] == ["50 % errors"]
    assert live["recent"] == described["tsctl"]["recent"]
