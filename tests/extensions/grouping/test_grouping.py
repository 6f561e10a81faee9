"""The jobs of the next batch are alike in length, and the oldest is one of them."""

import itertools
import math
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.batching.traffic.times import BatchTimes, PaddedTimes
from tsctl.daemon.core.job import Job, TimeBudget
from tsctl.daemon.extensions.grouping.grouping import WORTH_IT, LengthGrouping, alike, by_age

A, PER_BYTE = 0.008, 0.0001
COSTS = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=40)
SIZES = st.integers(1, 9)
FIXED = st.floats(0.0, 2.0)


def rest(costs: Sequence[float], chosen: Sequence[int]) -> list[float]:
    return [cost for index, cost in enumerate(costs) if index not in chosen]


def spent(costs: Sequence[float], batch_size: int, per_batch: float) -> float:
    """Return the seconds until all jobs are done, where batch after batch is chosen and no further job arrives."""
    seconds, left = 0.0, list(costs)
    while left:
        chosen = alike(left, batch_size, per_batch)
        seconds += per_batch + len(chosen) * max(left[index] for index in chosen)
        left = rest(left, chosen)
    return seconds


def cuts(jobs: Sequence[float], batch_size: int) -> Iterator[list[tuple[float, ...]]]:
    """Yield every way to part jobs into batches."""
    if not jobs:
        yield []
        return
    first, *others = jobs
    for count in range(min(batch_size, len(jobs))):
        for company in itertools.combinations(range(len(others)), count):
            with_it = (first, *(others[index] for index in company))
            for further in cuts(rest(others, company), batch_size):
                yield [with_it, *further]


@pytest.mark.parametrize(
    ("costs", "batch_size", "chosen"),
    [
        pytest.param([5, 5, 5, 5, 5], 3, [0, 1, 2], id="jobs of one length go by age"),
        pytest.param([5, 50, 6, 51, 5, 52], 3, [0, 2, 4], id="short jobs go with a short one"),
        pytest.param([50, 5, 51, 6, 52, 5], 3, [0, 2, 4], id="long jobs go with a long one"),
        pytest.param([50, 5, 5, 5, 5], 8, [0], id="a long one goes alone if padding the others costs more"),
        pytest.param([7, 5, 5, 5, 5], 8, [0, 1, 2, 3, 4], id="and together with the others if it costs less"),
        pytest.param([5, 5.1, 5, 5.1, 5, 5.1], 3, [0, 1, 2], id="a small difference is not worth overtaking"),
    ],
)
def test_the_next_batch(costs: list[float], batch_size: int, chosen: list[int]) -> None:
    assert alike(costs, batch_size, per_batch=10.0) == chosen


@given(COSTS, SIZES, FIXED)
def test_the_oldest_goes_and_no_batch_is_too_large(costs: list[float], batch_size: int, per_batch: float) -> None:
    chosen = alike(costs, batch_size, per_batch)

    assert chosen[0] == 0
    assert len(chosen) <= batch_size
    assert chosen == sorted(set(chosen)) and chosen[-1] < len(costs)


@given(COSTS, SIZES, FIXED)
def test_each_job_is_in_exactly_one_batch(costs: list[float], batch_size: int, per_batch: float) -> None:
    left, sent = list(range(len(costs))), []
    while left:
        chosen = alike([costs[job] for job in left], batch_size, per_batch)
        sent += [left[index] for index in chosen]
        left = [job for index, job in enumerate(left) if index not in chosen]

    assert sorted(sent) == list(range(len(costs)))


@given(COSTS, SIZES, FIXED)
def test_all_jobs_together_take_no_longer_than_by_age(costs: list[float], batch_size: int, per_batch: float) -> None:
    assert spent(costs, batch_size, per_batch) <= by_age(costs, batch_size, per_batch) * (1 + 1e-9)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6), st.integers(1, 4), FIXED)
def test_no_cut_takes_much_less(costs: list[float], batch_size: int, per_batch: float) -> None:
    """At most by the gain for which jobs are not overtaken."""
    least = min(sum(per_batch + len(batch) * max(batch) for batch in cut) for cut in cuts(costs, batch_size))

    assert spent(costs, batch_size, per_batch) <= WORTH_IT * least * (1 + 1e-9)


def padded() -> PaddedTimes:
    """Batches take A + n · PER_BYTE · longest."""
    times = BatchTimes()
    known = PaddedTimes(times)
    for count, longest in [(1, 100), (8, 300), (4, 100), (2, 500), (8, 100), (3, 300)] * 20:
        times.learn_batch(count, known.learn_batch(count, longest, A + count * PER_BYTE * longest))
    return known


def job(name: str, size: int, *, deadline: float = math.inf, queued: float = 0.0) -> Job:
    budget = None if deadline == math.inf else TimeBudget(deadline, 0.0, "a test")
    made = Job(name, (), (), queued, lambda reply: None, budget=budget)
    made.size = size
    return made


def names(jobs: Sequence[Job]) -> str:
    return " ".join(job.id for job in jobs)


def test_jobs_are_chosen_by_their_bytes() -> None:
    jobs = [job("a", 100), job("b", 900), job("c", 110), job("d", 920)]

    assert names(LengthGrouping(padded()).choose(jobs, 2, now=0.0)) == "a c"
    assert names(LengthGrouping(padded()).choose(jobs[1:], 2, now=0.0)) == "b d"


def test_before_batch_times_are_known_jobs_go_by_age() -> None:
    jobs = [job("a", 100), job("b", 900), job("c", 110), job("d", 920)]

    assert names(LengthGrouping(PaddedTimes(BatchTimes())).choose(jobs, 2, now=0.0)) == "a b"


# Batches of a and c take 30 ms, those of a and b 188 ms.
@pytest.mark.parametrize(
    ("deadline", "timeout", "sent"),
    [
        pytest.param(math.inf, math.inf, "a c", id="without a deadline"),
        pytest.param(1.000, math.inf, "a c", id="with a far one"),
        pytest.param(0.225, math.inf, "a c", id="with time for both batches"),
        pytest.param(0.210, math.inf, "a b", id="without time for both batches"),
        pytest.param(math.inf, 0.035, "a c", id="with time in the queue for the first batch"),
        pytest.param(math.inf, 0.030, "a b", id="without time in the queue for the first batch"),
    ],
)
def test_a_job_is_overtaken_only_if_it_has_the_time(deadline: float, timeout: float, sent: str) -> None:
    jobs = [job("a", 100), job("b", 900, deadline=deadline), job("c", 110), job("d", 920)]

    assert names(LengthGrouping(padded(), timeout).choose(jobs, 2, now=0.0)) == sent


@given(
    st.lists(st.tuples(st.integers(1, 1000), st.floats(0.0, 2.0)), min_size=1, max_size=30),
    st.integers(1, 8),
    st.floats(0.05, 2.0),
)
def test_no_job_expires_because_others_overtook_it(
    arrived: list[tuple[int, float]], batch_size: int, timeout: float
) -> None:
    """A job that would be sent now by age can be sent after the batch that overtakes it, and answered in time."""
    jobs = [job(str(index), size, deadline=deadline + 1e-3) for index, (size, deadline) in enumerate(arrived)]
    known = padded()

    chosen = LengthGrouping(known, timeout).choose(jobs, batch_size, now=0.0)

    behind = [other for other in jobs[:batch_size] if other not in chosen]
    after = known.of(chosen)
    assert all(after + known.of(jobs[:batch_size]) <= other.deadline and after <= timeout for other in behind)
