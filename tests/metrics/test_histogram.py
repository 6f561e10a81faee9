"""Quantiles of counted values are close to those of the values themselves."""

import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.metrics.histogram import FINE, SECONDS, Exemplars, Histogram, LatencyExample, bucket_of, quantile

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
TIMES = st.lists(st.floats(0.0001, 120.0), min_size=1, max_size=300)


def filled(values: list[float]) -> Histogram:
    histogram = Histogram(FINE)
    for value in values:
        histogram.observe(value)
    return histogram


def test_each_of_prometheus_bounds_is_a_fine_one() -> None:
    assert set(SECONDS) <= set(FINE)
    assert list(FINE) == sorted(set(FINE))
    assert quantile(FINE, Histogram(FINE).counts, 0.5) is None
    assert quantile(FINE, filled([500.0]).counts, 0.99) == 120.0, "at least the last bound"


@given(st.lists(st.floats(0.0, 9.0)), st.floats(-1.0, 10.0))
def test_a_bucket_is_found_as_bisect_finds_it(bounds: list[float], value: float) -> None:
    rising = tuple(sorted(bounds))

    for each in (value, *rising):
        assert bucket_of(rising, each) == bisect_left(rising, each)


@given(TIMES, st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_within_a_tenth_of_the_true_one(values: list[float], q: float) -> None:
    true = sorted(values)[math.ceil(q * len(values)) - 1]

    assert quantile(FINE, filled(values).counts, q) == pytest.approx(true, rel=0.1)


@given(TIMES)
def test_folded_values_are_those_counted_in_coarse_buckets(values: list[float]) -> None:
    coarse = Histogram(SECONDS)
    for value in [*values, 200.0]:
        coarse.observe(value)

    folded = filled([*values, 200.0]).folded(SECONDS)

    assert folded.counts == coarse.counts
    assert folded.sum == coarse.sum


def test_examples_are_one_for_each_bucket_and_outcome() -> None:
    exemplars = Exemplars()

    for index in range(10_000):
        exemplars.note("ok", LatencyExample(f"{index:032x}", index / 10, 1000.0))
    exemplars.note("error", LatencyExample(TRACE, 0.0001, 1000.0))

    assert len(exemplars.of("ok")) <= len(SECONDS) + 1
    assert exemplars.of("ok")[len(SECONDS)].seconds == 999.9
    assert [example.trace_id for example in exemplars.of("error").values()] == [TRACE]
    assert exemplars.of("expired") == {}
