"""The sequential test is wrong as seldom as it promises, however often one looks."""

import math
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsctl.daemon.extensions.rollouts.sequential import Evidence, Trials, judge, log_ratio, needed

LIMIT = 0.02
VERSIONS, REQUESTS = 1500, 20_000
DECIDED = 15.0  # a likelihood ratio of e^15 comes back once in three million versions


def looks(share: float, random: Random) -> Iterator[Trials]:
    """Yield the trials of a version before and at each bad request: the extremes of its likelihood ratio."""
    total = bad = 0
    while total < REQUESTS and abs(log_ratio(Trials(total, bad), LIMIT)) < DECIDED:
        total += math.floor(math.log(1 - random.random()) / math.log1p(-share))
        yield Trials(total, bad)
        total, bad = total + 1, bad + 1
        yield Trials(total, bad)


def ever(verdict: Evidence, share: float, alpha: float, beta: float) -> float:
    """Return how many versions of many are ever judged so, by a look at each request."""
    random = Random(3)
    found = (any(judge(each, LIMIT, alpha, beta) is verdict for each in looks(share, random)) for _ in range(VERSIONS))
    return sum(found) / VERSIONS


@pytest.mark.slow
@pytest.mark.parametrize("share", [LIMIT / 2, LIMIT / 4])
def test_a_good_version_is_seldom_taken_back(share: float) -> None:
    alpha = 0.05

    assert ever(Evidence.BAD, share, alpha, 0.01) <= alpha + 3 * (alpha / VERSIONS) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("share", [LIMIT, LIMIT * 2])
def test_a_bad_version_seldom_passes(share: float) -> None:
    beta = 0.05

    assert ever(Evidence.GOOD, share, 0.01, beta) <= beta + 3 * (beta / VERSIONS) ** 0.5


@pytest.mark.slow
def test_both_are_nearly_always_found_out() -> None:
    assert ever(Evidence.BAD, LIMIT * 1.5, 0.01, 0.01) > 0.95
    assert ever(Evidence.GOOD, LIMIT / 4, 0.01, 0.01) > 0.95


@given(
    limit=st.floats(0.001, 0.5), total=st.integers(0, 100_000), data=st.data(), beta=st.floats(0.001, 0.2),
)  # fmt: skip
def test_so_many_more_good_requests_are_needed_and_no_fewer(
    limit: float, total: int, data: st.DataObject, beta: float
) -> None:
    bad = data.draw(st.integers(0, total))
    more = needed(Trials(total, bad), limit, beta)

    assert log_ratio(Trials(total + more, bad), limit) <= math.log(beta) + 1e-6
    assert more == 0 or log_ratio(Trials(total + more - 1, bad), limit) > math.log(beta) - 1e-6


@pytest.mark.parametrize(
    ("total", "bad", "verdict"),
    [
        pytest.param(0, 0, Evidence.OPEN, id="nothing is shown by nothing"),
        pytest.param(900, 0, Evidence.OPEN, id="900 good requests are too few for 1 %"),
        pytest.param(920, 0, Evidence.GOOD, id="920 are enough"),
        pytest.param(7, 7, Evidence.BAD, id="seven failures in a row are shown to be no accident"),
        pytest.param(1000, 20, Evidence.BAD, id="2 % of a thousand"),
        pytest.param(1000, 7, Evidence.OPEN, id="between the two hypotheses"),
    ],
)
def test_examples_of_one_percent(total: int, bad: int, verdict: Evidence) -> None:
    assert judge(Trials(total, bad), 0.01, 0.01, 0.01) is verdict
