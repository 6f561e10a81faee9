"""Work beside a batch makes the batch longer, in proportion to the overlap."""

import random

import pytest

from daemon.tools.tune.overlap import Contention, Overlap

CHANCE = random.Random(1)


class Second:
    """Every batch takes a second alone."""

    def seconds(self, size: float, busy: int, chance: random.Random) -> float:
        return 1.0


def settled(way: float, gap: float, beside: Contention) -> Overlap:
    """Batches one after the other; in each a request is on its way for `way` seconds, from `gap` after its start on."""
    overlap = Overlap(Second(), beside)
    now = 0.0
    for _ in range(2000):
        seconds = overlap.batch(1, 1, CHANCE, now)
        overlap.way(now + gap, way)
        now += max(seconds, gap + way)
    return overlap


def test_with_nothing_beside_it_a_batch_takes_its_time() -> None:
    overlap = settled(way=0.5, gap=2.0, beside=Contention(3.0, 3.0))

    assert overlap.batch(1, 1, CHANCE, 1e6) == 1.0
    assert overlap.slower == 1.0


def test_with_requests_beside_half_of_it_a_batch_takes_longer_by_half_of_the_most() -> None:
    overlap = settled(way=0.5, gap=0.0, beside=Contention(1.0, 3.0))

    assert overlap.shared == pytest.approx(0.5)
    assert overlap.slower == pytest.approx(3.0)  # each of them had a batch beside it for all of its time


def test_a_batch_that_takes_longer_has_less_beside_it() -> None:
    overlap = settled(way=0.5, gap=0.0, beside=Contention(2.0, 1.0))

    # x = 1 + 0.5 / x: the seconds of a batch
    assert overlap.batch(1, 1, CHANCE, 1e6) == pytest.approx((1 + 3**0.5) / 2, rel=0.01)


def test_requests_that_were_on_their_way_when_a_batch_begins_are_beside_it() -> None:
    overlap = Overlap(Second(), Contention(2.0, 2.0))
    overlap.way(0.0, 1.5)

    overlap.batch(1, 1, CHANCE, 1.0)

    assert overlap.shared == pytest.approx(0.5)
    assert overlap.slower == pytest.approx(1 + 0.5 / 1.5)


def test_a_share_is_never_more_than_all() -> None:
    overlap = Overlap(Second(), Contention(2.0, 2.0))
    for _ in range(3):
        overlap.batch(1, 1, CHANCE, 0.0)
    overlap.way(0.0, 1.0)
    overlap.way(0.0, 1.0)

    assert overlap.shared <= 1.0
    assert overlap.slower <= 2.0
