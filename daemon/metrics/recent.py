"""The last minute of a version: its counts now, less those of a minute ago.

The counts are remembered every five seconds (metrics.py), so that requests pay nothing. A window covers 60 to
65 s.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tsctl.daemon.metrics.histogram import FINE, quantile

SECONDS = 60.0


class Counts(NamedTuple):
    """The counts of one version since its registration.

    Attributes:
        requests: answers.
        errors: those that count against the version (core/endings.py).
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
        requests, errors: answers, and how many requests count against the version (core/endings.py).
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
        while len(self._past) > 1 and self._past[1][0] <= now - SECONDS:
            self._past.popleft()

    def recent(self, counts: Counts, now: float) -> Recent:
        """Return the last minute of a version with these counts."""
        seconds, before = SECONDS, self._base
        for at, then in self._past:
            if at > now - SECONDS:
                break
            seconds, before = now - at, then
        if counts == before:
            return Recent(seconds, 0, 0, None, None)
        latencies = [new - old for new, old in zip(counts.latencies, before.latencies, strict=True)]
        return Recent(
            seconds, counts.requests - before.requests, counts.errors - before.errors,
            quantile(FINE, latencies, 0.5), quantile(FINE, latencies, 0.99),
        )  # fmt: skip
