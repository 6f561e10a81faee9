"""Two priorities in one queue: normal first, low when it has waited long enough, first in first out in each."""

import pytest

from tests.kit.client import Client
from tsctl.daemon.batching.queue import Queue, patience
from tsctl.daemon.core.job import Job, TimeBudget


def make(name: str, at: float = 0.0) -> Job:
    """Make a job: `low-…` is of low priority, one in capitals travels alone."""
    return Client().job(name, b"12", at, low_priority=name.startswith("low"), exclusive=name.isupper())


def filled(*names: str, waits: float = 10.0) -> tuple[Queue, dict[str, Job]]:
    """A queue to which these came, one each second from 0."""
    queue, jobs = Queue("m", 100, 1000, patience=waits), {name: make(name, at) for at, name in enumerate(names)}
    for job in jobs.values():
        queue.put(job)
    return queue, jobs


def order(queue: Queue) -> list[str]:
    """Take out all, each as the head of those left."""
    taken = []
    while len(queue):
        head = queue.head
        assert queue.take(1) == [head]
        taken.append(head.id)
    return taken


def test_normal_goes_before_low() -> None:
    queue, _ = filled("low-a", "b", "low-c", "d")

    assert order(queue) == ["b", "d", "low-a", "low-c"]


def test_a_batch_may_have_both() -> None:
    queue, _ = filled("low-a", "b", "low-c")

    assert [job.id for job in queue.take(2)] == ["b", "low-a"]
    assert (len(queue), queue.bytes) == (1, 2)


def test_a_low_one_that_has_waited_long_enough_goes_first() -> None:
    queue, _ = filled("low-a", "b", "low-c", "d", waits=5.0)

    queue.age(5.0)

    assert order(queue) == ["low-a", "b", "d", "low-c"]


def test_those_that_have_waited_long_enough_keep_their_order() -> None:
    queue, _ = filled("low-a", "b", "low-c", waits=5.0)

    queue.age(5.0)
    queue.put(make("low-d", 6.0))
    queue.age(7.0)

    assert order(queue) == ["low-a", "low-c", "b", "low-d"]


def test_one_that_travels_alone_goes_before_all() -> None:
    queue, _ = filled("low-a", "b", "X", waits=1.0)

    queue.age(9.0)

    assert order(queue) == ["X", "low-a", "b"]


def test_a_low_job_whose_worker_died_comes_back_before_all() -> None:
    queue, jobs = filled("low-a", "b")
    queue.remove(jobs["low-a"])
    jobs["low-a"].send()
    jobs["low-a"].give_back()

    queue.put_back(jobs["low-a"])

    assert order(queue) == ["low-a", "b"]


@pytest.mark.parametrize("name", ["low-a", "b", "X", "low-y"])
def test_any_can_be_taken_out(name: str) -> None:
    queue, jobs = filled("low-a", "b", "X", "low-y", waits=3.5)
    queue.age(3.5)

    queue.remove(jobs[name])

    assert name not in order(queue)
    assert (len(queue), queue.bytes) == (0, 0)


def test_one_that_is_not_there_cannot_be_taken_out() -> None:
    queue, _ = filled("a")

    with pytest.raises(KeyError):
        queue.remove(make("b"))


def test_the_first_that_came_is_known_whatever_its_lane() -> None:
    queue, _ = filled("low-a", "b", "c")

    assert queue.head.id == "b"
    assert queue.since() == (None, 0.0)


def test_all_are_held_once_and_the_first_moment_counts() -> None:
    queue, jobs = filled("low-a", "b", waits=5.0)
    queue.hold(2.0)
    queue.put(make("c", 3.0))
    queue.age(5.0)
    queue.put(make("low-d", 5.5))

    queue.hold(6.0)

    assert queue.since() == (2.0, 0.0)
    assert [job.held for job in queue.take(9)] == [2.0, 2.0, 6.0, 6.0]
    assert jobs["b"].held == 2.0


def test_the_longest_waiting_of_each_lane_are_known() -> None:
    queue, _ = filled("low-a", "low-b", "X", "c", "d", "Y", waits=4.5)
    queue.age(4.5)

    assert {job.id for job in queue.oldest()} == {"X", "low-a", "low-b", "c"}


def test_the_deadlines_are_those_of_the_jobs_that_wait() -> None:
    queue = Queue("m", 10, 1000)
    early, late = (Client().job("j", budget=TimeBudget(seconds, 0.0, "the test")) for seconds in (1.0, 2.0))
    for job in (late, early):
        queue.put(job)
    assert queue.deadlines.next == 1.0

    queue.remove(early)
    assert queue.deadlines.next == 2.0

    queue.take(1)
    assert len(queue.deadlines) == 0


@pytest.mark.parametrize(
    ("max_delay", "seconds"),
    [
        pytest.param(0.02, 0.08, id="four times the delay"),
        pytest.param(0.0, 0.4, id="without a delay, of the usual one"),
    ],
)
def test_patience(max_delay: float, seconds: float) -> None:
    assert patience(max_delay) == pytest.approx(seconds)


def test_a_low_one_that_is_admitted_late_does_not_pass_those_before_it() -> None:
    queue, jobs = filled("low-a", "low-b", waits=5.0)
    late = make("low-c", 2.0)
    queue.park(late)
    queue.age(5.0)

    queue.admit(late)
    queue.take(1)
    queue.age(9.0)

    assert [job.id for job in queue.oldest()] == ["low-b"]
    assert order(queue) == ["low-b", "low-c"]
    assert jobs["low-b"].queued < late.queued


def give_back(queue: Queue, *jobs: Job) -> None:
    """Put back what a worker had not started, as the dispatcher does: the last first."""
    for job in reversed(jobs):
        queue.put_back(job)


def test_what_two_workers_give_back_is_in_the_order_it_came() -> None:
    queue, _ = filled("a", "b", "c", "d", "e")
    one, other = queue.take(2), queue.take(2)

    give_back(queue, *one)
    give_back(queue, *other)

    assert [job.id for job in queue.oldest()] == ["a"]
    assert order(queue) == ["a", "b", "c", "d", "e"]


def test_a_low_one_that_comes_back_goes_before_those_that_came_after_it() -> None:
    queue, _ = filled("low-a", "low-b", "low-c", "d", waits=5.0)
    queue.age(5.0)
    first = queue.take(1)

    queue.age(6.0)
    give_back(queue, *first)
    queue.age(7.0)

    assert order(queue) == ["low-a", "low-b", "low-c", "d"]


def test_who_comes_back_before_one_that_is_held_is_held_as_long() -> None:
    queue, jobs = filled("a", "b")
    first = queue.take(1)
    queue.hold(5.0)

    give_back(queue, *first)
    queue.hold(6.0)

    assert queue.since() == (5.0, 0.0)
    assert {job.held for job in jobs.values()} == {5.0}
