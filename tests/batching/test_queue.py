"""First in, first out, bounded in jobs and in bytes."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.kit.client import Client
from tsctl.daemon.batching.queue import Queue
from tsctl.daemon.core.errors import QueueFull
from tsctl.daemon.core.job import Job


def jobs(*sizes: int) -> list[Job]:
    client = Client()
    return [client.job(f"j{index}", bytes(size)) for index, size in enumerate(sizes)]


def filled(*sizes: int, max_jobs: int = 10, max_bytes: int = 1000) -> tuple[Queue, list[Job]]:
    queue, inside = Queue("m", max_jobs, max_bytes), jobs(*sizes)
    for job in inside:
        queue.put(job)
    return queue, inside


@pytest.mark.parametrize(
    ("sizes", "limits", "reason"),
    [
        pytest.param((1, 1), {"max_jobs": 2}, 'The queue of model "m" is full: 2 requests wait', id="a job"),
        pytest.param((60, 40), {"max_bytes": 100}, "100 of 100 bytes wait, and this request has 1", id="a byte"),
    ],
)
def test_one_too_many_is_refused_and_changes_nothing(sizes: tuple[int, int], limits: Any, reason: str) -> None:
    queue, inside = filled(*sizes, **limits)

    with pytest.raises(QueueFull, match=reason):
        queue.put(jobs(1)[0])

    assert queue.bytes == sum(sizes)
    assert queue.take(9) == inside


def test_a_job_larger_than_the_limit_is_taken_when_nothing_waits() -> None:
    queue, (large,) = filled(5000, max_bytes=100)

    with pytest.raises(QueueFull):
        queue.put(jobs(1)[0])

    assert queue.take(1) == [large]


def test_a_job_comes_back_to_the_head_whatever_the_limits() -> None:
    queue, (first, second) = filled(50, 50, max_jobs=2, max_bytes=100)
    queue.take(1)
    third = jobs(50)[0]
    queue.put(third)

    queue.put_back(first)

    assert (len(queue), queue.bytes) == (3, 150)
    assert queue.take(3) == [first, second, third]


def test_jobs_of_low_priority_that_came_in_one_instant_keep_their_order_when_they_come_back() -> None:
    client = Client()
    inside = [client.job(name, low_priority=True) for name in "abc"]
    queue = Queue("m", 10, 1000, patience=0.0)
    for job in inside:
        queue.put(job)
    queue.age(client.now())

    for job in reversed(queue.take(2)):
        queue.put_back(job)
    queue.age(client.now())

    assert queue.take(3) == inside


def test_a_job_that_was_parked_is_held_as_long_as_before() -> None:
    queue, (first,) = filled(1)
    queue.hold(5.0)
    queue.withdraw(first)
    queue.put(jobs(1)[0])

    queue.admit(first)

    assert queue.since() == (5.0, first.arrived)


def test_a_queue_says_how_full_it_is() -> None:
    queue, _ = filled(1, 2)

    assert repr(queue) == "<Queue 2/10 jobs 3/1000 bytes>"


class Shortest:
    """Chooses the smallest jobs beside the oldest."""

    look_ahead = 2

    def choose(self, jobs: Sequence[Job], batch_size: int, now: float) -> list[Job]:
        return [jobs[0], *sorted(jobs[1:], key=lambda job: job.size)[: batch_size - 1]]


def test_the_jobs_that_are_chosen_for_a_batch_wait_no_more_and_the_others_do() -> None:
    queue, inside = filled(50, 90, 10, 40)
    queue.choice = Shortest()

    assert queue.take_batch(2, 0.0) == [inside[0], inside[2]]
    assert (len(queue), queue.bytes, queue.take(9)) == (2, 130, [inside[1], inside[3]])
