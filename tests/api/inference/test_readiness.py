"""Whether a model, or all of them, can answer: `/ready`, `/live`, and KServe's question."""

from pathlib import Path

import pytest

from tests.api.house import House
from tests.kit.protocols import PROTOCOLS


@pytest.mark.parametrize("target", ["/ready", *(each.ready[0] for each in PROTOCOLS if each.ready)])
@pytest.mark.parametrize("ready_when_full", ["true", "false"])
async def test_a_full_queue_ends_readiness_where_that_is_asked_for(
    tmp_path: Path, target: str, ready_when_full: str
) -> None:
    house = House(tmp_path, ready_when_full=ready_when_full)
    house.engine.batch_time = lambda size: 10.0
    await house.serve("m", "1.0", 1)
    statuses = []
    for _ in range(3):  # one that runs, and two that wait, which is all that the queue takes
        house.send("POST", "/predictions/m", b"x")
        statuses.append(house.send("GET", target).statuses[0])
    assert house.send("POST", "/predictions/m", b"x").statuses == [503]

    house.clock.advance(10.0)
    statuses.append(house.send("GET", target).statuses[0])

    assert statuses == [200, 200, 200 if ready_when_full == "true" else 503, 200]
    for told in ("/ready/m", *(target for each in PROTOCOLS for target in each.ready[1:])):
        assert house.send("GET", told).statuses == [200]
