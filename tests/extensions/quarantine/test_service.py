"""What a quarantine tells: events, the description of a version, and metrics."""

import asyncio
from pathlib import Path

from tests.api.house import House
from tests.kit.shelf import needs
from tsctl.daemon.extensions.quarantine.service import quarantine_of


@needs("sequences")
def test_a_version_with_sequences_has_none_since_no_request_can_run_alone_elsewhere(tmp_path: Path) -> None:
    model = asyncio.run(House(tmp_path).serve("m", config="sequenceBatching: true"))

    assert quarantine_of(model) is None


async def test_what_is_refused_is_described_and_counted(house: House) -> None:
    house.engine.batch_time = lambda size: 1.0
    model = await house.serve("m")
    for _ in range(2):
        house.send("POST", "/predictions/m", b"x")
        house.clock.settle()
        house.engine.workers[-1].crash(retry=False)
        house.clock.advance(6.1)

    refused = await house.ask("POST", "/predictions/m", b"x")
    _, (document,) = await house.tell("GET", "/models/m")

    assert refused.status == 500
    assert document["tsctl"]["quarantine"] == {
        "suspects": 1, "refused": 1, "requestsRefused": 1, "crashesInARow": 2,
    }  # fmt: skip
    assert document["tsctl"]["retryable"]
    assert house.samples("tsctl_requests_quarantined_total") == {("m", "1.0"): 1}
    assert model.metrics.refusals["quarantined"] == 1
