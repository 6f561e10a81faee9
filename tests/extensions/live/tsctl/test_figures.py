"""What the models do, from two answers."""

import math

import pytest

from tests.extensions.live.tsctl.documents import BOUNDS, answered, live, model
from tsctl.extension import PastRate
from tsctl.extensions.live.figures import figures, quantile
from tsctl.extensions.live.past_rates import KEPT, WINDOW, Past


def test_two_answers_make_rates() -> None:
    worker = {"pid": 7, "state": "READY", "memory": 3, "cpuSeconds": 3.0}
    before, after = live(2000.0, answered(100)), live(2002.0, answered(300, failed=10, workers=[worker]))

    (each,) = figures(before, after)

    assert (each.label, each.per_second, each.errors, each.batch) == ("m", 100.0, 5.0, 4.0)
    assert each.p50 == each.p99 == pytest.approx(1000 * math.sqrt(0.01 * 0.02))
    assert (each.cpu, each.memory) == (1.0, 3)


def test_one_answer_makes_the_figures_of_the_last_minute() -> None:
    recent = {"seconds": 60, "requests": 120, "errors": 6, "p50Ms": 5.0, "p99Ms": 9.0}

    (each,) = figures(None, live(2000.0, model(recent=recent)))

    assert (each.per_second, each.errors, each.p50, each.p99, each.batch, each.cpu) == (2.0, 0.1, 5.0, 9.0, None, None)


@pytest.mark.parametrize(
    ("before", "after", "rate"),
    [
        pytest.param(live(1999.0, answered(9999), started=5.0), live(2000.0, answered(8)), 0.0, id="another daemon"),
        pytest.param(live(2000.0, answered(9999)), live(2000.0, answered(8)), 0.0, id="no time has passed"),
        pytest.param(live(1999.0, answered(1000)), live(2000.0, answered(8)), 8.0, id="the model was registered again"),
    ],
)
def test_answers_that_cannot_be_compared_make_no_negative_rates(
    before: dict[str, object], after: dict[str, object], rate: float
) -> None:
    (each,) = figures(before, after)

    assert (each.per_second, each.batch) == (rate, 4.0 if rate else None)


def test_several_versions_have_their_versions_in_their_names() -> None:
    found = figures(None, live(2000.0, model(version="1.0"), model(version="2.0"), model("other")))

    assert [each.label for each in found] == ["m/1.0", "m/2.0", "other"]


@pytest.mark.parametrize(
    ("counts", "q", "expected"),
    [
        ([0, 0, 0, 0], 0.5, None), ([1, 0, 0, 0], 0.5, 10.0), ([99, 0, 1, 0], 0.99, 10.0),
        ([98, 0, 2, 0], 0.99, 1000 * math.sqrt(0.02 * 0.05)), ([0, 0, 0, 5], 0.5, 50.0),
    ],
)  # fmt: skip
def test_a_quantile_is_the_middle_of_its_bucket(counts: list[float], q: float, expected: float | None) -> None:
    assert quantile(BOUNDS, counts, q) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("totals", "rate"),
    [
        pytest.param([100] * 10 + [140 + 40 * second for second in range(10)], 40.0, id="a few seconds"),
        pytest.param([100 + 40 * min(second, 3) for second in range(10)], 0.0, id="nought soon after the last request"),
    ],
)
def test_figures_cover(totals: list[int], rate: float) -> None:
    past = Past()

    for second, total in enumerate(totals):
        past.take_answer(live(2000.0 + second, answered(total)))

    assert past.figures()[0].per_second == rate
    assert WINDOW < 10


def test_a_sparkline_keeps_its_latest_values_and_none_of_an_answer_right_after_another() -> None:
    past = Past()

    for second in range(KEPT + 10):
        past.take_answer(live(2000.0 + second, answered(4 * second * second)))
        past.take_answer(live(2000.01 + second, answered(4 * second * second + 8)))

    pace = past.pace(("m", "1.0"))
    assert len(pace) == KEPT
    assert pace[-1] == 4 * ((KEPT + 9) ** 2 - (KEPT + 8) ** 2)


@pytest.mark.parametrize("later", [live(2009.0, answered(5), started=2008.0), live(1000.5, answered(5))])
def test_another_daemon_and_a_clock_set_back_begin_anew(later: dict[str, object]) -> None:
    past = Past()
    for second in range(3):
        past.take_answer(live(2000.0 + second, answered(100 * second)))

    past.take_answer(later)

    assert past.latest is later
    assert past.figures()[0].per_second == 0.0
    assert past.pace(("m", "1.0")) == []


RATES = [PastRate(1970.0, 1.0), PastRate(1980.0, 2.0), PastRate(1990.0, 3.0)]


@pytest.mark.parametrize(
    ("rates", "step", "values"),
    [
        pytest.param([], 1.0, [], id="nothing is known"),
        pytest.param(RATES, 10.0, [1.0, 2.0, 3.0, 3.0], id="a step as long as theirs; the last holds until now"),
        pytest.param(RATES[1:], 5.0, [2.0, 3.0, 3.0, 3.0, 3.0], id="two steps for each"),
    ],
)
def test_sparklines_begin_with_what_the_daemon_remembers(
    rates: list[PastRate], step: float, values: list[float]
) -> None:
    past = Past()
    past.take_answer(live(2000.0, model()))

    past.recall({("m", "1.0"): rates}, step)

    assert past.pace(("m", "1.0")) == values
    past.take_answer(live(2001.0, answered(5)))
    assert past.pace(("m", "1.0")) == [*values, 5.0]


def test_no_more_is_remembered_than_a_sparkline_shows() -> None:
    past = Past()
    past.take_answer(live(2000.0, model()))

    past.recall({("m", "1.0"): [PastRate(1100.0 + 10 * step, step) for step in range(91)]}, 1.0)

    assert len(past.pace(("m", "1.0"))) == KEPT
