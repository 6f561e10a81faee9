"""The dispatcher's events become gaps, turnarounds, batch times and missing callers."""

from typing import Any

import pytest

from tsctl.daemon.batching.traffic.best_size import OVERHEAD, BestSize
from tsctl.daemon.batching.traffic.traffic import REPLY_LIFE, Traffic
from tsctl.daemon.core.job import Batch, Caller, Job


class Told:
    """Traffic, and short ways to tell it things."""

    def __init__(self, batch_size: int = 4) -> None:
        self.traffic = Traffic(batch_size)

    def arrive(self, now: float, caller: Caller | None = None) -> Job:
        job = Job("", (), (), now, lambda reply: None, caller=caller)
        self.traffic.arrived(job)
        self.traffic.callers.taken(job)
        job.send()
        return job

    def answer(
        self, jobs: list[Job], now: float, seconds: float = 0.01, *, reason: str = "full", first: bool = False
    ) -> None:
        batch = Batch(1, jobs, reason, now, first=first)
        self.traffic.returned(batch, seconds, now)
        for job in jobs:
            self.traffic.callers.ended(job, now)
        self.traffic.learn_batch(batch, seconds, now)


def test_gaps_are_between_arrivals() -> None:
    told = Told()
    for now in (10.0, 10.5, 10.75):
        told.arrive(now)

    assert told.traffic.gap == 0.25
    assert told.traffic.gaps.rate == pytest.approx(2 / 0.75, rel=0.01)
    assert list(told.traffic.trace) == [10.0, 10.5, 10.75]


def test_a_reply_is_matched_to_the_next_arrival_whoever_sends_it() -> None:
    told = Told()
    job = told.arrive(0.0)
    told.answer([job], 1.0)

    told.arrive(1.5)

    assert told.traffic.turnarounds.rate == pytest.approx(1 / 0.5)


def test_the_oldest_reply_is_matched_first_across_batches() -> None:
    told = Told()
    jobs = [told.arrive(0.0), told.arrive(0.0)]
    told.answer(jobs[:1], 1.0)
    told.answer(jobs[1:], 1.9)

    told.arrive(2.0)
    told.arrive(2.0)

    assert told.traffic.turnarounds.rate == pytest.approx(2 / 1.1, rel=0.01)


def test_replies_are_kept_for_two_batches() -> None:
    told = Told(batch_size=1)
    for now in (0.0, 0.1, 0.2):
        told.answer([told.arrive(now)], now)  # each arrival takes one

    told.answer([told.arrive(0.3)] * 3, 0.3)

    assert len(told.traffic._replies) == 2


def test_replies_are_kept_for_two_seconds() -> None:
    told = Told(batch_size=1)
    told.answer([told.arrive(0.3)] * 3, 0.3)

    told.arrive(0.3 + REPLY_LIFE + 0.01)

    assert not told.traffic._replies


def test_a_kept_connection_that_closes_takes_its_reply_with_it() -> None:
    told, stays, leaves = Told(), Caller(), Caller()
    told.answer([told.arrive(0.0, leaves)], 0.1)
    told.answer([told.arrive(0.2, leaves)], 0.3)
    leaves.close()
    told.answer([told.arrive(0.9, stays)], 1.0)
    told.arrive(1.25, stays)

    assert told.traffic.turnarounds.rate == pytest.approx(2 / (0.1 + 0.25), rel=0.01)


def test_the_reply_to_a_client_that_has_gone_is_matched_to_no_arrival() -> None:
    told, caller = Told(), Caller()
    job = told.arrive(0.0, caller)
    caller.close()

    told.answer([job], 1.0)

    assert not told.traffic._replies and not told.traffic.missing


def test_a_connection_for_each_request_leaves_its_reply_to_the_next() -> None:
    told, caller = Told(), Caller()
    told.answer([told.arrive(0.0, caller)], 1.0)
    caller.close()

    told.arrive(1.5, Caller())

    assert told.traffic.turnarounds.rate == pytest.approx(1 / 0.5)


def test_the_clients_of_the_last_batch_are_missing_until_they_come_back() -> None:
    told = Told()
    callers = [Caller() for _ in range(3)]
    told.answer([told.arrive(0.0, caller) for caller in callers], 1.0)
    assert told.traffic.missing == 3

    told.arrive(1.1, callers[0])

    assert told.traffic.missing == 2


def test_a_kept_connection_that_closes_is_not_waited_for() -> None:
    told, caller = Told(), Caller()
    told.answer([told.arrive(0.0, caller)], 0.5)
    told.answer([told.arrive(0.6, caller)], 1.0)

    caller.close()

    assert told.traffic.missing == 0


def test_a_connection_for_one_request_says_nothing_by_closing() -> None:
    told, caller = Told(), Caller()
    told.answer([told.arrive(0.0, caller)], 0.5)

    caller.close()

    assert told.traffic.missing == 1


def test_a_connection_that_left_an_earlier_batch_is_not_of_the_last() -> None:
    told, early, late = Told(), Caller(), Caller()
    for caller in (early, late):
        told.answer([told.arrive(0.0, caller)], 0.1)
    told.answer([told.arrive(0.2, early)], 0.3)
    told.answer([told.arrive(0.4, late)], 0.5)

    early.close()

    assert told.traffic.missing == 1


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"first": True}, id="a worker's first batch"),
        pytest.param({"reason": "retry"}, id="a retry"),
        pytest.param({"seconds": 0.0}, id="a batch that timed out"),
    ],
)
def test_what_says_nothing_about_batch_times_is_left_out(how: dict[str, Any]) -> None:
    told = Told()

    told.answer([told.arrive(0.0)], 1.0, **how)

    assert not told.traffic.times.known
    assert told.traffic.missing == 1, "its client is waited for all the same"


@pytest.mark.parametrize(("workers", "taken"), [(1, 0.1), (2, 0.01)])
def test_with_one_worker_the_best_size_is_learned_from_all_that_passes_from_batch_to_batch(
    workers: int, taken: float
) -> None:
    told = Told()
    told.traffic.best = BestSize(4, told.traffic.times)
    for number in range(1, 40):
        jobs = [told.arrive(number / 10) for _ in range(4)]
        # Sent ahead long before: it begins when the batch before it comes back.
        batch, now = Batch(number, jobs, "ahead", number / 10 - 0.15), number / 10
        told.traffic.returned(batch, 0.01, now)
        told.traffic.learn_batch(batch, 0.01, now, workers, workers)

    assert told.traffic.best.costs[4] == pytest.approx((taken + OVERHEAD) / 4)
