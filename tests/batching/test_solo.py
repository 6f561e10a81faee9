"""A job that travels alone: in no batch with others, and before those that wait."""

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.errors import QueueFull


def submit(bench: StubVersion, *names: str) -> None:
    """Let requests arrive; those in capitals travel alone."""
    for name in names:
        bench.submit(name, exclusive=name.isupper())


def test_it_goes_at_once_and_the_others_go_on_waiting_for_company() -> None:
    bench = StubVersion(batch_size=4, max_delay=10.0)
    submit(bench, "a", "X")

    bench.clock.settle()

    assert bench.batches == ["X"]
    assert bench.dispatcher.reasons == {"solo": 1}


def test_it_overtakes_what_waits_and_parts_no_batch() -> None:
    bench = StubVersion(batch_size=4, policy="greedy")
    submit(bench, "a")
    bench.clock.settle()
    submit(bench, "b", "c", "X", "d")

    bench.clock.advance(10.0)

    assert bench.batches == ["a", "X", "b c d"]


def test_one_whose_worker_died_is_a_retry() -> None:
    bench = StubVersion(batch_size=4, policy="greedy")
    submit(bench, "X")
    bench.clock.settle()

    bench.workers[0].die()
    submit(bench, "a")
    bench.clock.advance(10.0)

    assert bench.batches == ["X", "X", "a"]
    assert bench.dispatcher.reasons == {"solo": 1, "retry": 1, "at_once": 1}


def test_the_limits_of_the_queue_hold_for_it() -> None:
    bench = StubVersion(queue_jobs=1)
    submit(bench, "a")
    bench.clock.settle()
    submit(bench, "b")

    with pytest.raises(QueueFull):
        submit(bench, "X")

    assert len(bench.model.queue) == 1
