"""A busy worker gets one more batch, if it is full and there is one for every worker."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.batching.policies.collector import Facts, may_send_ahead
from tsctl.daemon.batching.policies.table import make_collector
from tsctl.daemon.core.job import Job


@pytest.mark.parametrize(
    ("waiting", "ready", "deadline", "expected"),
    [
        pytest.param(4, 1, math.inf, True, id="a full batch goes to the only worker"),
        pytest.param(3, 1, math.inf, False, id="less than a full batch does not"),
        pytest.param(8, 2, math.inf, True, id="two workers: one for each of them"),
        pytest.param(7, 2, math.inf, False, id="two workers: not enough for both"),
        pytest.param(4, 1, 102.0, True, id="its deadline leaves time for two batches"),
        pytest.param(4, 1, 101.9, False, id="its deadline comes before two batches end"),
    ],
)
def test_may_send_ahead(waiting: int, ready: int, deadline: float, expected: bool) -> None:
    facts = Facts(waiting, idle=0, deadline=deadline)

    assert may_send_ahead(facts, ready, batch_size=4, seconds=1.0, now=100.0) is expected


@pytest.mark.parametrize(("deadline", "expected"), [(1e9, False), (math.inf, True)])
def test_no_deadline_is_risked_before_batch_times_are_known(deadline: float, expected: bool) -> None:
    facts = Facts(4, idle=0, deadline=deadline)

    assert may_send_ahead(facts, 1, batch_size=4, seconds=0.0, now=100.0) is expected


def pairs(**options: Any) -> StubVersion:
    """Make a version whose batches of two take a second."""
    defaults: dict[str, Any] = {"batch_size": 2, "policy": "greedy"}
    return StubVersion(**defaults | options)


def test_a_busy_worker_is_sent_the_other_half_of_the_clients() -> None:
    bench = pairs(batch_size=8, policy="auto")
    halves = bench.model.traffic.halves
    assert halves is not None
    halves.share = 2

    bench.send(*"abcde")

    assert bench.batches == ["a b", "c d"]
    assert bench.dispatcher.reasons == {"half": 1, "ahead": 1}


class FirstAndLast:
    """Chooses the oldest job and the youngest."""

    look_ahead = 2

    def choose(self, jobs: Sequence[Job], batch_size: int, now: float) -> list[Job]:
        return [jobs[0], jobs[-1]]


@pytest.mark.parametrize(
    ("seconds", "jobs", "batches"),
    [
        pytest.param(0.0, "abcde", ["a d"], id="their duration is unknown"),
        pytest.param(0.002, "abcde", ["a d", "b e"], id="short ones, chosen of those that wait"),
        pytest.param(0.006, "abcde", ["a d"], id="before longer ones the worker may wait for a better choice"),
        pytest.param(0.006, "abcdefg", ["a d", "b f"], id="but not where more wait than would be chosen from"),
    ],
)
def test_batches_formed_by_a_choice_are_sent_ahead_if_they_are_short_or_enough_wait(
    seconds: float, jobs: str, batches: list[str]
) -> None:
    bench = pairs()
    bench.model.queue.choice = FirstAndLast()
    if seconds:
        bench.model.traffic.times.learn_batch(2, seconds)

    bench.send(*jobs)

    assert bench.batches == batches


@pytest.mark.parametrize("policy", ["greedy", "fixed"])
def test_no_other_policy_splits_the_clients(policy: str) -> None:
    bench = pairs(policy="auto")

    make_collector(policy, 2, 0.1, bench.model.traffic)

    assert bench.model.traffic.halves is None and bench.model.traffic.enough(9, 1) == 2


def test_what_had_not_started_has_waited_all_the_time() -> None:
    bench = pairs()
    began = bench.clock.now()
    jobs = bench.send(*"abcd")
    bench.clock.advance(0.5)

    bench.workers[0].die()

    assert {job.id: job.queued - began for job in jobs} == {"a": 0.5, "b": 0.5, "c": 0.0, "d": 0.0}
