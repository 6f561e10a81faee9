"""Each batch that has ended is remembered, with its reason and its times, and no job is kept alive by that."""

import gc
import weakref

from tests.kit.version import StubVersion
from tsctl.daemon.batching.traffic.traffic import KEPT, BatchLog
from tsctl.daemon.core.job import Batch, Job, Reply


def test_a_batch_is_remembered_with_its_times() -> None:
    bench = StubVersion(batch_size=4, max_delay=0.1, batch_time=0.5)
    began = bench.clock.now()
    bench.send("a")
    bench.clock.advance(0.06)
    bench.send("b")

    bench.clock.advance(2.0)

    (ended,) = bench.dispatcher.log.after(0)
    assert (ended.size, ended.limit, ended.reason, ended.queued, ended.failed) == (2, 4, "delay", 0, 0)
    assert ended.worker == bench.workers[0].pid
    assert round(ended.sent - began, 3) == 0.1
    assert (round(ended.waited, 3), round(ended.took, 3)) == (0.1, 0.5)


def test_a_batch_tells_how_many_requests_it_left_behind() -> None:
    bench = StubVersion(batch_size=2, policy="greedy")

    bench.send("a", "b", "c")
    bench.clock.advance(10.0)

    assert [(each.size, each.queued) for each in bench.dispatcher.log.after(0)] == [(2, 1), (1, 0)]


def test_a_batch_that_was_sent_ahead_has_waited_until_its_worker_began() -> None:
    bench = StubVersion(batch_size=2, policy="greedy", batch_time=1.0)
    bench.send("a", "b", "c", "d")

    bench.clock.advance(5.0)

    first, second = bench.dispatcher.log.after(0)
    assert (second.reason, round(second.waited, 3), round(second.took, 3)) == ("ahead", 1.0, 1.0)
    assert round(first.waited, 3) == 0.0


def test_requests_answered_with_an_error_have_failed() -> None:
    bench = StubVersion(batch_size=3, policy="greedy")
    bench.engine.answer = lambda job: Reply(500 if job.id == "b" else 404, b"", error="E")

    bench.send("a", "b", "c")
    bench.clock.advance(5.0)

    assert [each.failed for each in bench.dispatcher.log.after(0)] == [1]


def test_all_requests_of_a_lost_batch_have_failed_there_even_if_they_run_again() -> None:
    bench = StubVersion(batch_size=3, policy="greedy")
    bench.send("a", "b", "c")

    bench.workers[0].die(retry=True)

    (lost,) = bench.dispatcher.log.after(0)
    assert (lost.size, lost.failed, lost.took) == (3, 3, 0.0)


def test_a_batch_that_its_worker_never_began_is_not_one() -> None:
    bench = StubVersion(batch_size=2, policy="greedy")
    bench.send("a", "b", "c", "d")
    assert len(bench.workers[0].in_flight) == 2

    bench.workers[0].die(retry=True)

    assert [each.size for each in bench.dispatcher.log.after(0)] == [2]


def test_sequences_rise_and_tell_what_is_new() -> None:
    bench = StubVersion(policy="greedy")
    bench.send("a", "b", "c")
    bench.clock.advance(10.0)

    log = bench.dispatcher.log
    first, second, third = log.after(0)
    assert first.sequence < second.sequence < third.sequence == log.last
    assert log.after(second.sequence) == [third]
    assert log.after(log.last) == []


def test_sequences_rise_from_one_log_of_a_version_to_the_next() -> None:
    bench = StubVersion(policy="greedy")

    assert bench.dispatcher.log.last == int(bench.clock.now() * 1e6), "none had a batch for each microsecond"


def test_a_sequence_of_another_log_finds_everything() -> None:
    bench = StubVersion(policy="greedy")
    bench.send("a")
    bench.clock.advance(10.0)
    log = bench.dispatcher.log

    assert len(log.after(log.last + 5)) == 1


def test_only_the_latest_batches_are_kept_and_no_job_with_them() -> None:
    log = BatchLog(7)
    job = Job("a", [], [], 0.0, lambda reply: None)
    gone = weakref.ref(job) if hasattr(job, "__weakref__") else None

    for number in range(KEPT + 3):
        log.note(Batch(number, [job], "full", 1.0), 9, 0.5, 0, 2.0)
    del job
    gc.collect()

    kept = log.after(0)
    assert len(kept) == KEPT and kept[-1].sequence == log.last == 7 + KEPT + 3
    assert not any(isinstance(value, Job) for each in kept for value in each)
    assert gone is None or gone() is None
