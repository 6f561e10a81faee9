"""Jobs by their deadline: the next first, any of them out at any time, and none kept alive."""

import gc
import math
import random

from hypothesis import given
from hypothesis import strategies as st

from tests.kit.client import Client
from tsctl.daemon.batching.queue import JobDeadlines
from tsctl.daemon.core.job import Job, TimeBudget


def job(deadline: float) -> Job:
    return Client().job("j", budget=TimeBudget(deadline, 0.0, "the test"))


def test_the_earliest_is_the_first() -> None:
    deadlines = JobDeadlines()
    late, early = job(9.0), job(5.0)
    deadlines.add_job(late)
    deadlines.add_job(early)

    assert deadlines.next == 5.0
    assert deadlines.first(4.9) is None
    assert deadlines.first(5.0) is early
    assert deadlines.first(4.0, margin=1.0) is early
    assert len(deadlines) == 2


def test_a_job_without_a_deadline_is_not_watched() -> None:
    deadlines = JobDeadlines()
    free = Client().job("j")
    deadlines.add_job(free)
    deadlines.discard(free)

    assert len(deadlines) == 0
    assert deadlines.next == math.inf
    assert deadlines.first(math.inf) is None


def test_one_that_is_not_watched_can_be_discarded() -> None:
    deadlines = JobDeadlines()
    deadlines.add_job(job(1.0))
    deadlines.discard(job(1.0))

    assert len(deadlines) == 1


def test_a_job_that_has_gone_is_not_kept_alive() -> None:
    deadlines = JobDeadlines()
    gone = job(1000.0)
    deadlines.add_job(gone)
    deadlines.discard(gone)

    assert gc.get_referrers(gone) == []  # but this function's own variable, which does not count


def test_what_has_gone_takes_no_room_and_is_seldom_swept() -> None:
    deadlines = JobDeadlines()
    for _ in range(10_000):
        short = job(1000.0)
        deadlines.add_job(short)
        deadlines.discard(short)

    assert 10 < len(deadlines._heap) < 100


@given(st.lists(st.tuples(st.sampled_from(["add", "discard"]), st.integers(0, 9)), max_size=300), st.integers(0, 99))
def test_it_always_knows_the_next(steps: list[tuple[str, int]], seed: int) -> None:
    deadlines, inside, dice = JobDeadlines(), list[Job](), random.Random(seed)
    for step, deadline in steps:
        if step == "add":
            inside.append(job(1.0 + deadline))
            deadlines.add_job(inside[-1])
        elif inside:
            deadlines.discard(inside.pop(dice.randrange(len(inside))))

        assert len(deadlines) == len(inside)
        assert deadlines.next == min((each.deadline for each in inside), default=math.inf)
        assert (deadlines.first(5.0) is None) == (deadlines.next > 5.0)
