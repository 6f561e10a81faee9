"""Each answer is counted once by its status, however the request ended; and each worker by its end."""

from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.errors import BadRequest, CutOff, DaemonError, Loading, NoReadyWorker, QueueFull, Stopping
from tsctl.daemon.core.job import Reply
from tsctl.daemon.metrics.version import reason_of
from tsctl.daemon.workers.engine import ENDS


def served(**settings: Any) -> StubVersion:
    return StubVersion(batch_time=2.0, capacity=1, **settings)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (QueueFull("x"), "queue_full"),
        (Loading("x"), "loading"),
        (NoReadyWorker("x"), "no_worker"),
        (Stopping("x"), "stopping"),
        (CutOff("x", "id"), "stopping"),
        (BadRequest("x"), "invalid"),
        (DaemonError("x"), "other"),
    ],
)
def test_an_error_has_a_reason(error: DaemonError, reason: str) -> None:
    assert reason_of(error) == reason


def test_an_answered_request_is_counted_by_its_status_and_outcome() -> None:
    bench = served(batch_size=1)
    bench.send("a")
    bench.clock.advance(10.0)
    bench.engine.answer = lambda job: Reply(503, b"12345", error="x")
    before = bench.metrics.named.received, bench.metrics.named.sent
    bench.send("b", body=b"abc")
    bench.clock.advance(10.0)
    counted = bench.metrics.named.received, bench.metrics.named.sent
    assert (counted[0] - before[0], counted[1] - before[1]) == (3, 5), "bytes of bodies, both ways"

    assert bench.metrics.codes == {200: 1, 503: 1}
    assert {name: sum(each.counts) for name, each in bench.metrics.latencies.items()} == {
        "ok": 1, "error": 1, "expired": 0,
    }  # fmt: skip


def test_requests_that_waited_for_a_version_that_stops_are_refused() -> None:
    bench = served(batch_size=1)
    bench.send(*"abc")

    bench.model.stop()
    bench.model.refuse_waiting()
    with pytest.raises(Stopping):
        bench.send("d")

    assert bench.metrics.refusals == {"stopping": 3}
    assert bench.metrics.codes == {503: 3}


def test_a_request_whose_worker_dies_is_retried_and_answered_once() -> None:
    bench = served(batch_size=1, retry=True)
    bench.send("a")
    bench.workers[0].die()
    bench.clock.advance(10.0)

    assert bench.metrics.tally["retried"] == 1
    assert bench.metrics.codes == {200: 1}


def test_each_worker_is_counted_when_it_starts_and_by_its_end() -> None:
    bench = served(batch_size=1)
    bench.send("a")
    bench.workers[0].die()
    bench.clock.advance(10.0)
    bench.model.scale(0, 0)
    bench.clock.advance(10.0)

    assert bench.metrics.tally["starts"] == 2
    assert sum(bench.metrics.exits.values()) == 2
    assert bench.metrics.exits["stopped"] == 1
    assert set(bench.metrics.exits) <= set(ENDS)


def test_a_version_that_takes_over_continues_all_counts() -> None:
    old, new = served(batch_size=1), served(batch_size=1)
    old.send("a")
    old.clock.advance(10.0)

    new.metrics.take_over(old.metrics)
    old.send("b")
    old.clock.advance(10.0)

    assert new.metrics.codes == {200: 2}
    assert new.metrics.tally["starts"] == 2
