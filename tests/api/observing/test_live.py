"""The control socket shows the counts of all versions, and the latest batches of one."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.api.management.status import Urls, status_document
from tsctl.daemon.config.config import resolve
from tsctl.daemon.core.job import Reply
from tsctl.daemon.core.machine.processes import parse_stat, process_facts
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


def test_a_program_may_have_any_name() -> None:
    facts = parse_stat("7 (a) b (c)) S " + " ".join(str(number) for number in range(4, 30)))

    assert facts.cpu == (14 + 15) / os.sysconf("SC_CLK_TCK") and facts.memory == 24 * os.sysconf("SC_PAGESIZE")


def test_this_process_uses_memory_and_one_that_has_ended_does_not(tmp_path: Path) -> None:
    mine = process_facts(os.getpid())

    assert mine.memory > 1_000_000 and mine.cpu > 0
    assert process_facts(0) == process_facts(7, tmp_path) == (0, 0.0)


def test_each_document_of_a_version_tells_the_same_troubles(house: House, tmp_path: Path) -> None:
    (live,) = ask(house, "/tsctl/live")["models"]
    config = resolve({"state_dir": str(tmp_path), "socket": str(tmp_path / "s")}, {})
    (listed,) = status_document(config, Urls(), house.registry, 1.0)["models"]
    (described,) = ask(house, "/models/m")

    assert live["troubles"] == listed["troubles"] == described["tsctl"]["troubles"] == ["50 % errors"]
    assert live["recent"] == listed["recent"] == described["tsctl"]["recent"]
