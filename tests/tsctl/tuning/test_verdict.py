"""Which setting `tsctl tune` recommends: the rate decides, unless a limit is missed, and noise is no gain."""

import json

import pytest

from tests.kit.said import said_in
from tsctl.tuning.choice import TriedSetting
from tsctl.tuning.verdict import MeasuredSetting, Turn, judge, p99_gain, rate_gain


def measured(
    size: int, *rates: float, p99: float | list[float] = 0.1, workers: int = 1, failure: str = ""
) -> MeasuredSetting:
    """Return a setting with one turn for each rate."""
    tails = p99 if isinstance(p99, list) else [p99] * len(rates)
    turns = [Turn(rate, tail / 2, tail, 0.001, 2.0) for rate, tail in zip(rates, tails, strict=True)]
    return MeasuredSetting(TriedSetting(size, 100.0, "auto", workers), 1, turns, failure)


@said_in("verdicts.txt")
def test_judge(given: str) -> str:
    limits = json.loads(given)
    found = [measured(each.pop("size"), *each.pop("rates", ()), **each) for each in limits.pop("settings")]
    verdict = judge(found, **limits)
    return f"{verdict.best}: {verdict.sentence}"


def test_gains_are_those_of_the_rounds() -> None:
    now, other = measured(1, 100, 50, 80, p99=0.1), measured(8, 200, 110, 152, p99=0.05)

    assert rate_gain(other, now) == pytest.approx((2.0, 0.15))
    assert p99_gain(other, now) == (2.0, 0.0)
    assert rate_gain(measured(8), measured(1, 100)) == (1.0, 0.0), "without turns"
