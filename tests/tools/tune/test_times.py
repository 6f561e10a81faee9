"""Measured batch times, as l(n)."""

import random

import pytest

from daemon.tools.tune.times import Curve, PlacementTimes


def linear(a: float, c: float, *sizes: int) -> Curve:
    return Curve({size: [a + c * size] * 3 for size in sizes})


@pytest.mark.parametrize(
    ("size", "seconds"),
    [
        pytest.param(1, 1.0, id="as measured"),
        pytest.param(4, 3.0, id="the median, whatever the outliers"),
        pytest.param(2.5, 2.0, id="half-way between two"),
        pytest.param(6, 3.5, id="on the line of its neighbours"),
        pytest.param(16, 6.0, id="beyond the largest, on the last line"),
    ],
)
def test_between_measured_sizes_the_time_is_on_a_straight_line(size: float, seconds: float) -> None:
    curve = Curve({1: [1.0, 1.0, 9.0], 4: [3.0, 2.9, 30.0], 8: [4.0]})

    assert curve.at(size) == pytest.approx(seconds)


def test_where_only_one_size_is_known_batching_is_expected_to_save_nothing() -> None:
    assert Curve({1: [0.01]}).at(8) == pytest.approx(0.08)


def test_a_larger_batch_is_never_expected_to_be_faster_than_the_fastest_that_was_seen() -> None:
    assert Curve({1: [1.0], 2: [0.5]}).at(32) == 0.5


def test_the_fit_finds_what_a_batch_and_what_a_request_costs() -> None:
    fit = linear(0.008, 0.0004, 1, 2, 4, 8, 32).fit()

    assert (fit.a, fit.c, fit.residual) == pytest.approx((0.008, 0.0004, 0.0))


def test_the_residual_is_the_largest_distance_from_the_fit() -> None:
    medians = {1: 1.0, 2: 2.0, 4: 4.0, 8: 10.0}

    fit = Curve({size: [seconds] for size, seconds in medians.items()}).fit()

    distances = [abs(seconds - fit.a - fit.c * size) / seconds for size, seconds in medians.items()]
    assert fit.residual == pytest.approx(max(distances))
    assert fit.residual > 0.05


def test_a_batch_never_costs_less_than_nothing_beside_its_requests() -> None:
    fit = Curve({1: [1.0], 2: [2.1], 4: [4.4]}).fit()

    assert fit.a == 0.0
    assert 1.0 < fit.c < 1.1


def test_the_capacity_is_that_of_full_batches_on_all_workers_at_once() -> None:
    times = PlacementTimes(2, 1, {1: linear(0.01, 0.0, 1, 8), 2: linear(0.02, 0.0, 1, 8)})

    assert times.capacity(8) == pytest.approx(2 * 8 / 0.02)


@pytest.mark.parametrize(("busy", "seconds"), [(1, 1.0), (2, 1.5), (3, 2.0)])
def test_the_more_workers_are_busy_the_longer_a_batch_takes(busy: int, seconds: float) -> None:
    times = PlacementTimes(3, 1, {1: Curve({1: [1.0]}), 3: Curve({1: [2.0]})})

    assert times.seconds(1, busy, random.Random(1)) == pytest.approx(seconds)


def test_batch_times_vary_as_those_that_were_measured() -> None:
    times = PlacementTimes(1, 1, {1: Curve({1: [0.9, 1.0, 1.3]})})
    chance = random.Random(1)

    assert {round(times.seconds(1, 1, chance), 9) for _ in range(100)} == {0.9, 1.0, 1.3}
