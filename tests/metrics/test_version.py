"""A version's counts after its dispatcher's events."""

from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Batch
from tsctl.daemon.metrics.histogram import Histogram
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.handlers.wire import Isolation


def served(**settings: Any) -> StubVersion:
    """Make a version whose batches take two seconds; its worker holds one at a time."""
    return StubVersion(batch_time=2.0, capacity=1, **settings)


def by_bound(histogram: Histogram) -> dict[float, int]:
    """Make the largest value of each bucket that is not empty → values in it."""
    bounds = (*histogram.bounds, float("inf"))
    return {bound: count for bound, count in zip(bounds, histogram.counts, strict=True) if count}


def test_a_request_waits_then_runs_then_is_answered() -> None:
    bench = served(batch_size=4, max_delay=0.5)

    bench.send(*"abc")
    bench.clock.advance(10.0)

    assert bench.metrics.batches == {"delay": 1}
    assert by_bound(bench.metrics.batch_size) == {4.0: 1} and bench.metrics.batch_size.sum == 3
    assert by_bound(bench.metrics.queue_time) == {0.5: 3}
    assert by_bound(bench.metrics.inference_time) == {2.5: 1} and bench.metrics.inference_time.sum == 2.0
    assert by_bound(bench.metrics.latency) == {2.5: 3} and bench.metrics.latency.sum == pytest.approx(7.5)
    assert bench.metrics.last_queue_time == 0.5
    assert (bench.metrics.last_inference_time, bench.metrics.last_overhead) == (2.0, 0.0)


def test_a_job_that_is_sent_again_has_waited_once() -> None:
    bench = served(batch_size=1)
    bench.send("a")

    bench.workers[0].die()
    bench.clock.advance(10.0)

    assert bench.metrics.batches == {"full": 1, "retry": 1}
    assert sum(bench.metrics.queue_time.counts) == 1
    assert sum(bench.metrics.latency.counts) == 1
    twice = served(batch_size=1, queue_jobs=1)
    twice.send("a")
    for _ in range(2):  # an answer after two dead workers is an answer
        twice.workers[-1].die()
        twice.clock.advance(1.0)
    assert sum(twice.metrics.latency.counts) == 1
    full = served(queue_jobs=1, batch_size=9)
    full.send("a")
    with pytest.raises(DaemonError):
        full.send("a")
    assert (full.metrics.named.requests, full.metrics.latency.sum) == (2, 0), "a refused one is counted, too"
    assert sum(bench.metrics.inference_time.counts) == 1  # the batch that died has no time of its own


def test_a_client_that_left_has_no_latency() -> None:
    bench = served(batch_size=1)
    running, waiting = bench.send(*"ab")

    bench.model.abandon(running)
    bench.model.abandon(waiting)
    bench.clock.advance(10.0)

    assert sum(bench.metrics.latency.counts) == 0
    assert sum(bench.metrics.inference_time.counts) == 1


def test_what_expires_is_counted_where_it_was_and_has_a_latency_if_a_worker_had_it() -> None:
    bench = served(batch_size=1)
    metrics, (job,) = bench.metrics, bench.send("a")

    metrics.expired(job, "queue", 504, job.arrived + 1.0)
    assert metrics.latency.sum == 0
    metrics.expired(job, "worker", 504, job.arrived + 1.0)

    assert metrics.expirations == {"queue": 1, "worker": 1}
    assert metrics.latency.sum == 1.0


def test_a_batch_that_timed_out_has_no_time_in_the_worker_and_the_way_is_what_is_left_of_anothers() -> None:
    metrics = VersionMetrics()
    bench = served(batch_size=1)
    bench.send("a")
    (batch,) = bench.workers[0].batches

    metrics.returned(batch, 0.0, bench.clock.now() + 120)
    metrics.answered(batch.jobs[0], 500, bench.clock.now() + 120)

    assert sum(metrics.inference_time.counts) == 0
    assert metrics.latency.sum == 120
    metrics.returned(batch, 0.25, batch.sent + 0.75)
    assert metrics.last_overhead == 0.5


def test_a_version_that_still_finishes_what_it_has_goes_on_counting_for_the_one_in_its_place() -> None:
    (job,), before, after = served().send("a"), VersionMetrics("m", "1.0"), VersionMetrics("m", "1.0")
    after.batch_isolated(Isolation(failed=1, seconds=0.1))
    after.continue_from(before)

    before.requested(job)
    before.sent(Batch(1, [job], "full", job.arrived))
    before.expired(job, "worker", 504, 1.0)
    before.batch_isolated(Isolation(failed=2, seconds=0.1))

    assert after.named.requests + after.unnamed.requests == 1
    assert (after.batches, after.expirations) == ({"full": 1}, {"worker": 1})
    assert (after.tally["isolated"], after.tally["failed_alone"]) == (2, 3), "its own, too"


def test_a_version_that_is_not_traced_keeps_no_examples() -> None:
    assert VersionMetrics("m", "1.0").exemplars is None


def test_the_ends_of_workers_are_counted_by_how_and_show_whether_the_version_is_crashing() -> None:
    bench = served(batch_size=1)
    ended = []
    for _ in range(3):
        bench.send("a")
        bench.workers[-1].crash(retry=False)
        ended.append(bench.metrics.crashing)
        bench.clock.advance(60.0)
    bench.workers[-1].die()

    assert {how: count for how, count in bench.metrics.exits.items() if count} == {"code": 3, "signal": 1}
    assert ended == [False, False, True]


def test_each_count_is_handed_over_under_the_name_that_daemons_of_other_releases_read() -> None:
    version = VersionMetrics("m", "1.0")
    held = [(name, getattr(version, name)) for name in dir(version) if not name.startswith("_")]  # compiled, no `vars`
    attributes = {id(value): name for name, value in held}
    own = {name: each for name, each in version.histograms.items() if not name.startswith("stage ")}

    told = [{name: attributes[id(each)] for name, each in table.items()} for table in (version.counters, own)]

    counters = ("afterwards", "batches", "codes", "excused", "exits", "expirations", "given_up", "refusals", "tally")
    same = ("batch_size", "failed", "held_up", "inference_time", "late", "ok", "queue_time", "rejected")
    renamed = {"given_up": "given_up_times", "unheard": "unheard_times"}
    assert told == [{name: name for name in counters}, {name: name for name in same} | renamed]
