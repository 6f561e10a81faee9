"""The course of a version: differences of counts, each with its moment, and never more than 15 minutes of them."""

import math

import pytest

from tsctl.daemon.extensions.history.course import EVERY, KEPT, Course, CourseSample
from tsctl.daemon.metrics.histogram import FINE, Counts

ERA = object()
EPOCH = 1_700_000_000.0


def counts(requests: int, errors: int = 0) -> Counts:
    """Return the counts after so many requests, which took 10 ms each, and those with errors a second."""
    latencies = [0] * (len(FINE) + 1)
    for seconds, count in ((0.01, requests - errors), (1.0, errors)):
        latencies[next(index for index, bound in enumerate(FINE) if bound >= seconds)] += count
    return Counts(requests, errors, tuple(latencies))


def note(course: Course, *totals: int, start: float = 0.0, era: object = ERA) -> None:
    for step, total in enumerate(totals):
        now = start + step * EVERY
        course.note(counts(total, total // 10), era, 3, now, EPOCH + now)


def test_a_sample_is_what_came_since_the_one_before() -> None:
    course = Course()

    note(course, 100, 150, 150)

    first, second = course.rows()
    assert (first.time, first.rate, first.errors, first.queued) == (EPOCH + EVERY, 5.0, 0.5, 3)
    assert first.p50 == pytest.approx(10.0, rel=0.1) and first.p99 == pytest.approx(1000.0, rel=0.1)
    assert (second.rate, second.errors, math.isnan(second.p99)) == (0.0, 0.0, True)


def test_a_late_look_counts_the_time_that_has_passed() -> None:
    course = Course()
    course.note(counts(0), ERA, 0, 0.0, EPOCH)

    course.note(counts(100), ERA, 0, 25.0, EPOCH + 25.0)

    assert course.rows()[0][1:3] == (4.0, 0.0)


def test_no_more_than_fifteen_minutes_are_kept() -> None:
    course = Course()

    note(course, *range(0, 10 * (KEPT + 50), 10))

    assert len(course) == KEPT and KEPT * EVERY == 900.0
    assert course.rows()[-1].time == EPOCH + (KEPT + 49) * EVERY
    assert {row.rate for row in course.rows()} == {1.0}


def test_counts_that_began_anew_make_no_sample() -> None:
    course = Course()

    note(course, 100, 5, 25)

    assert [row.rate for row in course.rows()] == [2.0]


def test_counts_of_days_that_another_daemon_hands_over_make_no_sample() -> None:
    course = Course()
    note(course, 0, 10)

    note(course, 1_000_000, 1_000_010, start=2 * EVERY, era=object())

    assert [row.rate for row in course.rows()] == [1.0, 1.0]


def test_the_document_has_each_field_of_the_samples_and_null_where_no_worker_has_answered() -> None:
    course = Course()
    course.recall(
        [CourseSample(EPOCH, 1.5, 0.25, 2.5, 9.5, 3), CourseSample(EPOCH + 10.04, 0, 0, math.nan, math.nan, 0)]
    )

    assert course.document() == {
        "time": [EPOCH, EPOCH + 10.0],
        "requestsPerSecond": [1.5, 0.0],
        "errorsPerSecond": [0.25, 0.0],
        "p50Ms": [2.5, None],
        "p99Ms": [9.5, None],
        "queued": [3, 0],
    }
