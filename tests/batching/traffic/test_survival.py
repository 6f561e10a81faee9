"""A histogram of waiting times that forgets."""

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.batching.traffic.callers import BUCKETS, EDGES, FORGETTING, LAST, Survival

SECONDS = st.floats(0.0, 100.0)


def of(*values: float) -> Survival:
    law = Survival()
    for value in values:
        law.add_time(value)
    return law


def test_the_edges_are_equal_steps_on_a_logarithmic_scale() -> None:
    steps = [math.log(high / low) for low, high in itertools.pairwise(EDGES)]

    assert len(EDGES) == BUCKETS and EDGES[0] == pytest.approx(0.0001) and EDGES[-1] == pytest.approx(LAST)
    assert steps == pytest.approx([steps[0]] * len(steps))


def test_nothing_is_known_at_first() -> None:
    law = Survival()

    assert (law.rate, law.median, law.effective, law.after(1.0)) == (0.0, 0.0, 0.0, 0.0)


def test_the_rate_is_values_by_their_sum_the_latest_counting_most() -> None:
    assert of(0.1, 0.1, 0.1).rate == pytest.approx(10.0)
    assert of(*[1.0] * 2000, *[0.01] * 2000).rate == pytest.approx(100.0, rel=0.01)


def test_about_two_hundred_values_count() -> None:
    assert of(*[1.0] * 5000).effective == pytest.approx(1 / (1 - FORGETTING), rel=0.01)


@given(st.lists(SECONDS, min_size=1, max_size=50), st.lists(SECONDS, min_size=2, max_size=5))
def test_what_is_later_grows_less_with_time(values: list[float], moments: list[float]) -> None:
    law = of(*values)

    later = [law.after(moment) for moment in sorted(moments)]

    assert all(weight >= -1e-9 for weight in later)
    assert all(second <= first + 1e-9 for first, second in itertools.pairwise(later))


@given(st.lists(SECONDS, min_size=1, max_size=50))
def test_at_an_edge_the_weight_is_that_of_the_buckets_above(values: list[float]) -> None:
    law = of(*values)

    for edge, above in list(law.later(0.0))[:-1]:
        assert law.after(edge) == pytest.approx(above, abs=1e-9)


@given(SECONDS)
def test_what_comes_later_begins_with_the_next_edge(seconds: float) -> None:
    edges = [edge for edge, _ in of(0.01).later(seconds)]

    assert edges == [edge for edge in EDGES if edge > seconds]


def test_the_weight_is_spread_evenly_within_a_bucket() -> None:
    low, high = EDGES[10], EDGES[11]
    law = of((low + high) / 2)

    assert law.after(low) == pytest.approx(1.0)
    assert law.after(low + (high - low) / 4) == pytest.approx(0.75)


def test_the_median_is_the_edge_above_it() -> None:
    assert of(0.001, 0.001, 0.001, 5.0, 5.0).median == next(edge for edge in EDGES if edge >= 0.001)


def test_the_longest_of_several_times_is_that_of_their_law() -> None:
    survival, chance = Survival(), random.Random(1)
    for _ in range(5000):
        survival.add_time(chance.expovariate(1000.0))

    assert Survival().latest(3) == 0.0
    # Of n exponential times with a mean of 1 ms the longest is expected after 1 + 1/2 + … + 1/n ms.
    assert survival.latest(1) == pytest.approx(0.001, rel=0.1)
    assert survival.latest(8) == pytest.approx(0.00272, rel=0.1)


def test_a_typical_value_is_the_mean_without_the_pauses() -> None:
    survival = of(*[0.004] * 50, *[0.002] * 50, 5.0)

    assert Survival().typical == 0.0
    assert survival.typical == pytest.approx(0.003, rel=0.2)


def test_a_million_values_keep_their_proportions() -> None:
    law = Survival()
    for _ in range(20_000):  # the growing weight passes its limit several times
        law.add_time(0.001)
        law.add_time(0.010)

    assert law.after(0.005) / law.after(0.0) == pytest.approx(0.5, abs=0.01)
    assert law.rate == pytest.approx(1 / 0.0055, rel=0.01)
