"""Conditions are read, and each counts its requests."""

import pytest

from tests.kit.said import reason, said_in
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.extensions.rollouts.conditions import (
    bound_of,
    less,
    parse_condition,
    slower,
    together,
    trials_of,
)
from tsctl.daemon.extensions.rollouts.sequential import Trials
from tsctl.daemon.metrics.histogram import FINE, Counts, Histogram


def counts(*seconds: float, errors: int = 0) -> Counts:
    """Return the counts of answers that took so long."""
    made = Histogram(FINE)
    for each in seconds:
        made.observe(each)
    return Counts(len(seconds), errors, tuple(made.counts))


@said_in("read.txt")
def test_conditions_are_read(given: str) -> str:
    return reason(lambda: parse_condition(given), BadRequest)


def test_a_relative_bound_needs_enough_answers_of_the_versions_before() -> None:
    condition = parse_condition("p90>2x")

    assert bound_of(condition, counts(*[0.01] * 199)) is None
    assert bound_of(condition, counts(*[0.01] * 200)) == pytest.approx(0.02, rel=0.25)
    assert bound_of(parse_condition("p90>2s"), counts()) == 2.0


def test_slow_requests_are_counted_by_buckets_that_begin_beyond_the_bound() -> None:
    found = counts(0.01, 0.05, 0.1, 0.3, 500.0)

    assert slower(found.latencies, 0.05) == 3  # and not the one that took just that
    assert slower(found.latencies, 0.2) == 2
    assert slower(found.latencies, FINE[-1]) == 1


def test_each_condition_counts_its_requests() -> None:
    found, compared = counts(0.01, 0.3, errors=1), Trials(9, 4)

    assert trials_of(parse_condition("errors>1%"), found, None, compared) == Trials(2, 1)
    assert trials_of(parse_condition("differs>1%"), found, None, compared) == compared
    assert trials_of(parse_condition("p99>100ms"), found, 0.1, compared) == Trials(2, 1)
    assert trials_of(parse_condition("p99>1.5x"), found, None, compared) is None


def test_counts_are_added_and_subtracted() -> None:
    one, two = counts(0.01, errors=1), counts(0.01, 0.3)

    assert less(together([one, two]), one) == two
    assert together([]) == Counts()
