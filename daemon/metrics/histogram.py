"""A histogram of plain numbers: the count of values in each bucket, and their sum; and that of the last minute.

The last minute of a version is its counts now, less those of a minute ago. The counts are remembered every five seconds
(metrics.py), so that requests pay nothing. A window covers 60 to 65 s.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

BATCH_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


def _between(bounds: Sequence[float], least: float, ratio: float) -> tuple[float, ...]:
    """Return these bounds with others between, from `least` on: each at most `ratio` times the one before."""
    made = []
    for low, high in zip((least, *bounds), bounds, strict=False):
        steps = math.ceil(math.log(high / low) / math.log(ratio))
        made += [low * (high / low) ** (step / steps) for step in range(steps)]
    return (*made, bounds[-1])


FINE = _between(SECONDS, 0.0001, 1.21)  # the geometric middle of a bucket is within 10 % of each of its values


def bucket_of(bounds: tuple[float, ...], value: float) -> int:
    """Return the index of the first bound that is no less than `value`; `len(bounds)` if there is none.

    It is `bisect.bisect_left`, of which each request does four: compiled, a quarter of the instructions.
    """
    low, high = 0, len(bounds)
    while low < high:
        middle = (low + high) >> 1
        if bounds[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


class Histogram:
    """Counts by bucket.

    Args:
        bounds: the largest value of each bucket, rising; one more bucket takes larger values.

    Attributes:
        counts: values in each bucket alone, `len(bounds) + 1` of them.
        sum: of all values.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bucket_of(self.bounds, value)] += 1
        self.sum += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add the counts of another histogram with the same bounds."""
        if any(counts):  # that of most versions is empty, where hundreds are registered
            for index, count in enumerate(counts):
                self.counts[index] += count
            self.sum += total

    def folded(self, bounds: tuple[float, ...]) -> "Histogram":
        """Return the same values in buckets with some of these bounds.

        Args:
            bounds: each one of this histogram's; the last ones must be equal.
        """
        made, index = Histogram(bounds), 0
        made.sum = self.sum
        if not any(self.counts):
            return made
        for bound, count in zip(self.bounds, self.counts, strict=False):
            if bound > bounds[index]:
                index += 1
            made.counts[index] += count
        made.counts[-1] += self.counts[-1]
        return made


def quantile(bounds: Sequence[float], counts: Sequence[int], q: float) -> float | None:
    """Return an estimate of the quantile: the geometric middle of its bucket, or the last bound; None without values.

    Args:
        q: from 0.0 to 1.0.
    """
    left = q * sum(counts)
    if not any(counts):
        return None
    for index, count in enumerate(counts):
        left -= count
        if count and left <= 0:
            if index == len(bounds):
                return bounds[-1]
            return math.sqrt(bounds[index - 1] * bounds[index]) if index else bounds[0]
    return bounds[-1]


class LatencyExample(NamedTuple):
    """One request.

    Attributes:
        seconds: from its complete receipt to its answer.
        time: of the answer, seconds since the epoch.
    """

    trace_id: str
    seconds: float
    time: float


class Exemplars:
    """The examples of one version, in the buckets of `SECONDS`, for each outcome of `VersionMetrics.latencies`."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], LatencyExample] = {}

    def __repr__(self) -> str:
        return f"<Exemplars {len(self._kept)} kept>"

    def note(self, outcome: str, example: LatencyExample) -> None:
        """Keep an example, in place of the one that its bucket had."""
        self._kept[outcome, bucket_of(SECONDS, example.seconds)] = example

    def of(self, outcome: str) -> dict[int, LatencyExample]:
        return {index: example for (other, index), example in self._kept.items() if other == outcome}


MINUTE = 60.0


class Counts(NamedTuple):
    """The counts of one version since its registration.

    Attributes:
        requests: answers.
        errors: those that count against the version (core/job.py).
        latencies: answered requests that count, by their time, in buckets of `FINE`.
        aside: answers that count neither way, less the jobs that count though nobody waited for their answers.
    """

    requests: int = 0
    errors: int = 0
    latencies: Sequence[int] = (0,) * (len(FINE) + 1)
    aside: int = 0

    @property
    def judged(self) -> int:
        """The requests that count for or against the version."""
        return self.requests - self.aside


@dataclass(frozen=True, slots=True)
class Recent:
    """The last minute of one version.

    Attributes:
        seconds: the time that the counts cover.
        requests, errors: answers, and how many requests count against the version (core/job.py).
        p50, p99: seconds from complete receipt to the answer, within 10 %; None if a worker answered none that counts.
    """

    seconds: float
    requests: int
    errors: int
    p50: float | None
    p99: float | None


class Window:
    """The counts of one version in the last minute.

    Args:
        base: the counts at the beginning.
    """

    def __init__(self, base: Counts = Counts()) -> None:  # noqa: B008 - immutable
        self._base = base
        self._past: deque[tuple[float, Counts]] = deque()

    def note(self, counts: Counts, now: float) -> None:
        """Remember the counts, and forget those that no question needs any more."""
        if self._past and self._past[-1][1] == counts:
            counts = self._past[-1][1]  # one tuple for all the time without requests
        self._past.append((now, counts))
        while len(self._past) > 1 and self._past[1][0] <= now - MINUTE:
            self._past.popleft()

    def recent(self, counts: Counts, now: float) -> Recent:
        """Return the last minute of a version with these counts."""
        seconds, before = MINUTE, self._base
        for at, then in self._past:
            if at > now - MINUTE:
                break
            seconds, before = now - at, then
        if counts == before:
            return Recent(seconds, 0, 0, None, None)
        latencies = [new - old for new, old in zip(counts.latencies, before.latencies, strict=True)]
        return Recent(
            seconds, counts.requests - before.requests, counts.errors - before.errors,
            quantile(FINE, latencies, 0.5), quantile(FINE, latencies, 0.99),
        )  # fmt: skip
