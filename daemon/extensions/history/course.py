"""The course of one version: its work in each of the last 90 steps of ten seconds.

Samples are differences of counts that exist anyway, so requests pay nothing. A version costs 3 kB.
"""

import math
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from tsctl.daemon.metrics.histogram import FINE, quantile
from tsctl.daemon.metrics.recent import Counts

EVERY = 10.0  # seconds
KEPT = 90  # samples: 15 minutes


class CourseSample(NamedTuple):
    """The work of a version until a moment, since the sample before.

    Attributes:
        time: the moment, seconds since the epoch.
        rate, errors: answers, and requests that count against the version, a second.
        p50, p99: milliseconds; nan if a worker answered no request that counts.
        queued: requests that waited at the moment.
    """

    time: float
    rate: float
    errors: float
    p50: float
    p99: float
    queued: float


class Course:
    """The samples of one version, the oldest first."""

    def __init__(self) -> None:
        self._columns = [array("d"), *(array("f") for _ in CourseSample._fields[1:])]
        self._before: Counts | None = None
        self._since = 0.0
        self._era: object = None

    def __len__(self) -> int:
        return len(self._columns[0])

    def note(self, counts: Counts, era: object, queued: int, now: float, time: float) -> None:
        """Add a sample of the time since the last call.

        Args:
            counts: of the version, now.
            era: another object than before if counts were added that are not of this time, as after an upgrade.
            now: on the daemon's clock.
            time: the same moment, in seconds since the epoch.
        """
        before, seconds = self._before, now - self._since
        if before is not None and era is self._era and seconds > 0.0 and counts.requests >= before.requests:
            self._add(_sample(before, counts, queued, seconds, time))
        self._before, self._since, self._era = counts, now, era

    def rows(self) -> list[CourseSample]:
        """Return the samples."""
        return [CourseSample(*row) for row in zip(*self._columns, strict=True)]

    def recall(self, rows: Sequence[CourseSample]) -> None:
        """Begin with the samples of an earlier run."""
        for row in rows:
            self._add(row)

    def document(self) -> dict[str, Any]:
        """Return the samples by their fields; null for latencies where there are none."""
        time, rate, errors, p50, p99, queued = (list(column) for column in self._columns)
        return {
            "time": [round(each, 1) for each in time],
            "requestsPerSecond": [round(each, 2) for each in rate],
            "errorsPerSecond": [round(each, 2) for each in errors],
            "p50Ms": [_or_none(each) for each in p50],
            "p99Ms": [_or_none(each) for each in p99],
            "queued": [round(each) for each in queued],
        }

    def _add(self, sample: CourseSample) -> None:
        for column, value in zip(self._columns, sample, strict=True):
            column.append(value)
            if len(column) > KEPT:
                column.pop(0)


def _sample(before: Counts, counts: Counts, queued: int, seconds: float, time: float) -> CourseSample:
    if counts == before:
        return CourseSample(time, 0.0, 0.0, math.nan, math.nan, queued)
    latencies = [new - old for new, old in zip(counts.latencies, before.latencies, strict=True)]
    p50, p99 = (quantile(FINE, latencies, q) for q in (0.5, 0.99))
    rate, errors = counts.requests - before.requests, counts.errors - before.errors
    return CourseSample(time, rate / seconds, max(0, errors) / seconds, _or_nan(p50), _or_nan(p99), queued)


def _or_nan(seconds: float | None) -> float:
    return math.nan if seconds is None else seconds * 1000


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)
