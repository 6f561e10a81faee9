"""The control socket shows the counts of all versions, and the latest batches of one."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tsctl.daemon.api.management.status import tsctl_version
from tsctl.daemon.core.job import Reply
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.extensions.live.batches import batches_document
from tsctl.daemon.extensions.live.counts import live_document
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
    assert model["latency"]["bounds"] == list(FINE)
    assert sum(model["latency"]["counts"]) == 2 and model["latency"]["sum"] == pytest.approx(0.14, abs=0.001)


def test_each_number_of_a_version_stands_under_its_own_name_with_the_daemons(house: House) -> None:
    model = house.registry.find("m")
    model.metrics.refusals["queue_full"], model.metrics.expirations["worker"] = 3, 2
    (worker,) = house.engine.workers
    worker.pid = os.getpid()

    document = live_document(house.registry, 1.0, 5000.0)

    (told,) = document.pop("models")
    assert document == {"time": 5000.0, "started": 1.0, "pid": os.getpid(), "version": tsctl_version()}
    assert (told["refused"], told["expired"]) == ({"queue_full": 3}, {"worker": 2})
    (place,) = told["workers"]
    assert place["pid"] == os.getpid() and 0 < place["cpuSeconds"] < 1e6 < place["memory"]
    (batch,) = batches_document(model, 0, 5000.0)["batches"]
    assert batch["time"] == pytest.approx(4999.02)


def test_the_gpus_are_those_of_the_daemons_status(tmp_path: Path) -> None:
    house = House(tmp_path, gpus=[Card(index=0, uuid="GPU-a", name="H100", total=4096)])

    told = ask(house, "/tsctl/live")["gpus"]

    assert told == ask(house, "/tsctl/status")["gpus"] == [{"name": "H100", "uuid": "GPU-a", "memory": 4096}]


def test_the_age_of_the_daemon_is_on_its_own_clock(house: House) -> None:
    before = ask(house, "/tsctl/live")["upSeconds"]
    house.clock.advance(5.0)

    assert ask(house, "/tsctl/live")["upSeconds"] == pytest.approx(before + 5.0)


def test_troubles_the_last_minute_and_what_is_learned_are_those_of_the_describe_document(house: House) -> None:
    (live,) = ask(house, "/tsctl/live")["models"]
    (described,) = ask(house, "/models/m")

    told = described["tsctl"]
    assert live["troubles"] == told["troubles"] == ["50 % errors"]
    assert live["recent"] == told["recent"]
    assert live["learned"] == {name: told["batching"]["learned"][name] for name in ("bestSize", "sizes")}
