"""A step's evidence: the requests since it began, which the next daemon goes on counting."""

from collections.abc import Sequence

import pytest

from tsctl.daemon.extensions.rollouts.conditions import parse_condition
from tsctl.daemon.extensions.rollouts.evidence import Samples, StepRecord
from tsctl.daemon.extensions.rollouts.sequential import Trials
from tsctl.daemon.metrics.histogram import FINE, Counts, Histogram

ERRORS, SLOWER, DIFFERS = map(parse_condition, ("errors>1%", "p99>2x", "differs>1%"))
ALL = (ERRORS, SLOWER, DIFFERS)
NONE = Counts()


def counted(requests: int, errors: int = 0, seconds: Sequence[float] = ()) -> Counts:
    """Return counts of requests that took 0.01 s, but for those whose seconds are given."""
    histogram = Histogram(FINE)
    for each in (*seconds, *[0.01] * (requests - len(seconds))):
        histogram.observe(each)
    return Counts(requests, errors, tuple(histogram.counts))


def test_only_requests_since_the_step_began_count() -> None:
    record = StepRecord(5.0, counted(100, 7), counted(50), Trials(9, 9), None)

    assert record.trials(ERRORS, counted(130, 8), counted(90), Trials(9, 9)) == Trials(30, 1)
    assert record.trials(SLOWER, counted(130, 8), counted(90), Trials(9, 9)) is None, "40 answers are no percentile"
    assert record.trials(DIFFERS, counted(130, 8), counted(90), Trials(12, 10)) == Trials(3, 1)


def test_the_next_daemon_goes_on_with_the_time_and_the_requests() -> None:
    first = StepRecord(5.0, NONE, NONE, Trials(0, 0), None)
    first.trials(SLOWER, NONE, counted(2000), Trials(0, 0))  # the bound is known from now on
    now = (counted(30, 2, seconds=[1.0]), counted(2500), Trials(4, 1))
    samples = first.samples(ALL, 25.0, *now)

    second = StepRecord(1000.0, counted(7, 7), counted(3), Trials(5, 5), samples)
    now = (counted(17, 8, seconds=[1.0, 1.0]), counted(10), Trials(6, 5))

    assert second.began == 980.0
    found = [second.trials(each, *now) for each in ALL]
    assert found == [Trials(40, 3), Trials(40, 3), Trials(5, 1)]
    assert second.samples(ALL, 1000.0, *now).trials == dict(zip([each.text for each in ALL], found, strict=True))


def test_the_percentile_of_the_versions_before_is_found_in_the_answers_of_all_daemons() -> None:
    samples = StepRecord(0.0, NONE, NONE, Trials(0, 0), None).samples(ALL, 1.0, NONE, counted(1500), Trials(0, 0))
    assert (samples.bounds, "p99>2x" in samples.trials) == ({}, False)

    second = StepRecord(0.0, NONE, NONE, Trials(0, 0), samples)

    assert second.trials(SLOWER, counted(5), counted(499), Trials(0, 0)) is None
    assert second.trials(SLOWER, counted(5), counted(500), Trials(0, 0)) == Trials(0, 0)
    assert second.trials(SLOWER, counted(9), counted(500), Trials(0, 0)) == Trials(4, 0)


def test_latencies_of_a_tsctl_with_other_buckets_are_forgotten() -> None:
    samples = Samples(elapsed=1.0, before=Counts(2000, 0, (2000, 0, 0)))

    record = StepRecord(0.0, NONE, NONE, Trials(0, 0), samples)

    assert record.trials(SLOWER, NONE, NONE, Trials(0, 0)) is None


@pytest.mark.parametrize(
    ("now", "same"),
    [(counted(130, 8), True), (counted(100, 7), True), (counted(99), False), (counted(120, 0, [1.0] * 60), False)],
)
def test_a_version_that_was_registered_anew_is_noticed(now: Counts, same: bool) -> None:
    assert StepRecord(0.0, counted(100, 7), NONE, Trials(0, 0), None).is_of(now) is same
