"""The state of autoscaling, as the control socket and the metrics show it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.api.house import House
from tests.metrics.reading import values
from tsctl.daemon.extensions.scaling import service as resources
from tsctl.daemon.extensions.scaling.service import ScalingService

CONFIG = "targetQueueMs: 500\nbatching: greedy\nbatchSize: 1\n"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A daemon whose batches take a second."""
    monkeypatch.setattr(resources, "taken", lambda pid: 0)
    house = House(tmp_path)
    house.engine.batch_time = lambda size: 1.0
    return house


def shown(house: House) -> Any:
    _, document = asyncio.run(house.tell("GET", "/tsctl/live"))
    return document["models"][0]["autoscaling"]


def test_a_target_is_shown_before_the_first_decision(house: House) -> None:
    asyncio.run(house.serve("m", config=CONFIG))
    house.registry.find("m").scale(1, 3)

    assert shown(house) == {
        "targetQueueMs": 500.0, "minWorkers": 1, "maxWorkers": 3, "predictedWaitMs": None, "reason": "",
        "blocked": False, "quietSeconds": None, "lastChange": None, "takenAwayAfter": 60.0,
    }  # fmt: skip


def test_what_was_decided_is_shown_by_the_documents_and_the_metrics(house: House) -> None:
    async def busy() -> str:
        (await house.serve("m", config=CONFIG)).scale(1, 3)
        scaling = house.service(ScalingService)
        scaling.begin()
        for _ in range(20):
            house.send("POST", "/predictions/m", b"a")
            house.clock.advance(0.5)
        scaling.close()
        answer = await house.ask("GET", "/metrics")
        return str(answer.body, "utf-8")

    text = asyncio.run(busy())
    found = shown(house)
    lines = values(text)

    assert house.registry.find("m").pool.wanted > 1
    assert found["lastChange"]["after"] == house.registry.find("m").pool.wanted
    assert "predicted wait" in found["lastChange"]["reason"]
    assert found["predictedWaitMs"] == pytest.approx(lines["tsctl_predicted_wait_seconds{model=m,version=1.0}"] * 1000)
    assert lines["tsctl_target_wait_seconds{model=m,version=1.0}"] == 0.5
    assert lines["tsctl_workers_max{model=m,version=1.0}"] == 3
