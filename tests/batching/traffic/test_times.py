"""l(n) = a + c·n, learned from batches that came back."""

import random

import pytest

from tsctl.daemon.batching.traffic.times import BatchTimes


def learn(*batches: tuple[int, float]) -> BatchTimes:
    times = BatchTimes()
    for size, seconds in batches:
        times.learn_batch(size, seconds)
    return times


def test_nothing_is_known_before_the_first_batch() -> None:
    times = BatchTimes()

    assert not times.known and times.of(8) == times.mean == 0.0


def test_the_first_batch_is_halved_between_batch_and_job() -> None:
    times = learn((4, 0.008))

    assert times.known and not times.spread
    assert times.per_batch == pytest.approx(0.004) and times.per_job == pytest.approx(0.001)


def test_two_sizes_give_the_line() -> None:
    times = learn((1, 0.0084), (8, 0.0112))

    assert times.spread
    assert times.per_batch == pytest.approx(0.008) and times.per_job == pytest.approx(0.0004)


def test_noise_is_averaged_out() -> None:
    chance = random.Random(1)
    sizes = [chance.randint(1, 32) for _ in range(500)]

    times = learn(*((size, (0.008 + 0.0004 * size) * chance.uniform(0.7, 1.3)) for size in sizes))

    assert times.of(1) == pytest.approx(0.0084, rel=0.2)
    assert times.of(32) == pytest.approx(0.0208, rel=0.1)


def test_where_all_batches_have_one_size_the_level_follows_and_the_slope_stays() -> None:
    times = learn((1, 0.0084), *[(8, 0.0112)] * 200, *[(8, 0.0224)] * 500)

    assert times.of(8) == pytest.approx(0.0224, rel=0.01)
    assert times.per_batch / times.per_job == pytest.approx(20.0)


def test_a_batch_that_took_far_too_long_counts_three_times_the_prediction() -> None:
    steady = [(1, 0.0084), (8, 0.0112)] * 50

    assert learn(*steady, (8, 10.0)).of(8) == learn(*steady, (8, 3 * learn(*steady).of(8))).of(8)


@pytest.mark.parametrize("batches", [[(1, 0.010), (8, 0.001)], [(1, 0.001), (2, 0.010)]], ids=["c < 0", "a < 0"])
def test_neither_part_is_negative(batches: list[tuple[int, float]]) -> None:
    times = learn(*batches)

    assert times.per_batch >= 0.0 and times.per_job >= 0.0 and times.of(1) > 0.0


def test_a_change_of_the_model_is_followed() -> None:
    times = learn(*[(1, 0.0084), (8, 0.0112)] * 100, *[(1, 0.021), (8, 0.028)] * 200)

    assert times.per_batch == pytest.approx(0.020, rel=0.02) and times.per_job == pytest.approx(0.001, rel=0.02)
    assert times.mean == pytest.approx(0.0245, rel=0.01)
