"""What was decided about the number of workers, as the control socket and the metrics show it."""

from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.extensions.scaling import service as resources
from tsctl.daemon.extensions.scaling.service import ScalingService


async def test_what_was_decided_is_shown_by_the_documents_and_the_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "taken", lambda pid: 0)
    house = House(tmp_path)
    house.engine.batch_time = lambda size: 1.0
    model = await house.serve("m", config="targetQueueMs: 500\nbatching: greedy\nbatchSize: 1\n")
    model.scale(1, 3)
    scaling = house.service(ScalingService)
    scaling.begin()
    for _ in range(20):
        house.send("POST", "/predictions/m", b"a")
        house.clock.advance(0.5)
    scaling.close()

    found = (await house.tell("GET", "/models/m"))[1][0]["tsctl"]["autoscaling"]

    assert model.pool.wanted > 1
    assert found["lastChange"]["after"] == model.pool.wanted
    assert "predicted wait" in found["lastChange"]["reason"]
    predicted, target, most = (
        house.samples(f"tsctl_{name}")["m", "1.0"]
        for name in ("predicted_wait_seconds", "target_wait_seconds", "workers_max")
    )
    assert found["predictedWaitMs"] == pytest.approx(predicted * 1000)
    assert (target, most) == (0.5, 3)
