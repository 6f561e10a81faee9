"""Which settings are worth having, and which is recommended."""

from typing import Any

import pytest

from daemon.tools.tune.candidates import Candidate
from daemon.tools.tune.frontier import Point, frontier, recommend


def point(capacity: float, p99: float, p50: float | None = None, *, keeps_up: bool = True, **changes: Any) -> Point:
    values: dict[str, Any] = {"workers": 1, "threads": 1, "batch_size": 8, "max_delay": 0.01, "policy": "auto"}
    median = p99 / 2 if p50 is None else p50
    return Point(Candidate(**values | changes), capacity, 100.0, median, p99, 4.0, keeps_up)


FAST, MIDDLE, LARGE = point(100, 0.010), point(200, 0.020), point(400, 0.050)
BEATEN = point(150, 0.030)


def test_a_setting_that_another_beats_in_everything_is_not_on_the_frontier() -> None:
    assert frontier([FAST, BEATEN, LARGE, MIDDLE]) == [LARGE, MIDDLE, FAST]


def test_a_setting_that_is_better_in_the_median_alone_stays() -> None:
    quick = point(150, 0.030, p50=0.004)

    assert quick in frontier([FAST, MIDDLE, quick])


def test_differences_of_a_percent_are_noise() -> None:
    simple, other = point(200, 0.0201, policy="auto"), point(201, 0.0200, policy="fixed")

    assert frontier([other, simple]) == [simple]


def test_of_equals_the_simplest_stays() -> None:
    points = [
        point(200, 0.02, policy="greedy"),
        point(200, 0.02, workers=2),
        point(200, 0.02, batch_size=16),
        point(200, 0.02, max_delay=0.02),
        point(200, 0.02),
    ]

    assert frontier(points) == [points[-1]]


def test_without_a_wish_the_least_p99_counts_and_then_the_capacity() -> None:
    nearly = point(300, 0.0104)

    best, rule = recommend([FAST, nearly, LARGE])

    assert best == nearly
    assert rule == "the highest capacity of the settings whose p99 is within 5% of the least"


def test_with_a_wish_for_p99_the_highest_capacity_within_it_is_chosen() -> None:
    best, rule = recommend([FAST, MIDDLE, LARGE], slo=0.020)

    assert best == MIDDLE
    assert rule == "the highest capacity of the settings whose p99 is at most 20 ms"


@pytest.mark.parametrize(
    ("points", "slo"),
    [
        pytest.param([FAST, MIDDLE], 0.009, id="all too slow"),
        pytest.param([point(100, 0.01, keeps_up=False)], None, id="all fall behind"),
    ],
)
def test_where_none_will_do_none_is_recommended(points: list[Point], slo: float | None) -> None:
    assert recommend(points, slo)[0] is None
