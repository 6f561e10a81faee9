"""How long batches take beside other busy workers: measured, bounded where not, and forgotten slowly."""

import random

import pytest

from tsctl.daemon.batching.traffic.times import MOST, BatchTimes, Together


def learned(*batches: tuple[float, int, float], times: int = 30) -> Together:
    together = Together(BatchTimes())
    for _ in range(times):
        for batch in batches:
            together.learn_batch(*batch)
    return together


def test_nothing_is_known_at_first() -> None:
    together = learned()

    assert together.hoped(2, 4) == together.expected(2, 4) == 0.0 and not together.measured()


def test_what_was_measured_is_expected() -> None:
    together = learned((1, 8, 0.130), (2, 4, 0.090))

    assert together.expected(1, 8) == pytest.approx(0.130) and together.expected(2, 4) == pytest.approx(0.090)
    assert together.hoped(1, 8) == pytest.approx(0.130, rel=0.03)


@pytest.mark.parametrize(
    ("busy", "size", "least"),
    [
        pytest.param(2, 8, 0.090, id="a larger one takes no less"),
        pytest.param(3, 4, 0.090, id="nor one beside more workers"),
        pytest.param(2, 2, 0.045, id="half of it at least half"),
        pytest.param(1, 4, 0.045, id="nor is it more than twice as fast alone"),
        pytest.param(1, 8, 0.045, id="the same of a larger one"),
    ],
)
def test_what_was_not_measured_is_hoped_to_be_as_fast_as_it_can_be(busy: int, size: int, least: float) -> None:
    assert learned((2, 4, 0.090)).hoped(busy, size) == pytest.approx(least, rel=0.03)


def test_hope_ends_when_it_was_tried_once() -> None:
    together = learned((2, 4, 0.180))
    assert together.hoped(1, 8) < 0.1

    together.learn_batch(1, 8, 0.130)

    assert together.hoped(1, 8) == pytest.approx(0.130, rel=0.15)


def test_what_came_about_once_is_hoped_to_be_no_faster_than_it_is_beside_fewer_workers() -> None:
    together = learned((3, 8, 0.0020))

    together.learn_batch(4, 8, 0.0018)

    assert together.hoped(4, 8) == pytest.approx(0.0020, rel=0.03)


def test_a_measured_batch_is_hoped_to_take_less_than_half_of_one_twice_as_large() -> None:
    together = learned((4, 2, 0.010), (4, 4, 0.050))

    assert together.hoped(4, 2) == pytest.approx(0.010, rel=0.03)


def test_hope_fades_when_it_was_tried_in_vain() -> None:
    together = learned((2, 4, 0.090))
    before = together.hoped(1, 8)
    for _ in range(5):
        together.missed(1, 8)

    assert together.hoped(1, 8) > 2 * before


def test_what_was_bad_is_tried_again_after_a_thousand_batches_of_another_kind() -> None:
    together = learned((1, 8, 0.130), times=4)
    batches = 0
    while together.hoped(1, 8) > 0.08 and batches < 3000:
        together.learn_batch(2, 4, 0.090)
        batches += 1

    assert 500 < batches < 2500


@pytest.mark.parametrize("busy", [1.25, 1.35])
def test_a_batch_that_others_were_beside_for_a_part_of_its_time_tells_of_the_whole_number(busy: float) -> None:
    together = learned((2, 8, 0.260))  # two workers on one core
    for _ in range(20):
        share = busy - 1
        together.learn_batch(busy, 8, 1 / ((1 - share) / 0.130 + share / 0.260))

    assert together.expected(1, 8) == pytest.approx(0.130, rel=0.01)


def test_a_batch_halfway_between_two_numbers_tells_of_neither() -> None:
    together = learned((1.5, 8, 0.2))

    assert not together.measured()


def test_between_two_sizes_and_two_numbers_lies_the_time_between() -> None:
    together = learned((1, 2, 0.010), (1, 3, 0.020), (2, 2, 0.030))

    assert together.hoped(1, 2.5) == pytest.approx(0.015, rel=0.03)
    assert together.expected(1.5, 2) == pytest.approx(0.020)


def test_noise_of_thirty_percent_leaves_the_mean() -> None:
    chance = random.Random("noise")
    together = Together(BatchTimes())
    for _ in range(300):
        together.learn_batch(2, 4, 0.090 * chance.uniform(0.7, 1.3))

    assert together.expected(2, 4) == pytest.approx(0.090, rel=0.1)
    assert together.hoped(2, 4) == pytest.approx(together.expected(2, 4), rel=0.08)


def test_there_are_few_sizes_however_large_batches_are() -> None:
    together = Together(BatchTimes())
    for size in range(1, 1025):
        together.learn_batch(1, size, 0.01)

    assert len(together.measured()) <= 8 * 8 + 1


def test_what_does_not_change_makes_nobody_think_again() -> None:
    together = learned((2, 4, 0.090))
    before = together.changes
    for _ in range(64):
        together.learn_batch(2, 4, 0.091)

    assert together.changes <= before + 1


@pytest.mark.parametrize("seed", range(5))
def test_what_was_not_measured_is_bounded_by_all_that_was_at_any_time(seed: int) -> None:
    chance, together = random.Random(seed), learned()
    for _ in range(300):
        if chance.random() < 0.1:
            together.missed(chance.randint(1, 9), chance.randint(1, 99))
        else:
            together.learn_batch(chance.randint(1, 6), 2 ** chance.randint(0, 5), chance.choice((0.001, 0.1, 9.0)))
        busy, size = chance.randint(1, 20), chance.randint(1, 99)

        bounds = [
            together.hoped(each.busy, each.size) * min(1.0, size / each.size) * min(1.0, min(busy, MOST) / each.busy)
            for each in together.measured()
        ]

        assert together._least(min(busy, MOST), size) == pytest.approx(max(bounds, default=0.0))
