"""Observe the traffic of the last seconds. Times in seconds, on the daemon's clock."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from statistics import fmean
from typing import NamedTuple

MOST_COUNTED = 1000  # arrivals: enough for a rate that is known to some percent, and counted in microseconds
WINDOW = (5.0, 120.0)  # seconds, at least and at most …
BATCHES = 10.0  # … and so many full batches in between: of slow models, fewer seconds show nothing


def window_of(seconds: float) -> float:
    """Return how long to look back, where a full batch takes `seconds`."""
    return min(max(BATCHES * seconds, WINDOW[0]), WINDOW[1])


def recent_rate(trace: Sequence[float], now: float, window: float) -> tuple[float, int]:
    """Return the arrivals a second over a window, and how many were counted.

    Args:
        trace: times of arrivals, the oldest first.
    """
    count = 0
    for at in islice(reversed(trace), MOST_COUNTED):
        if at <= now - window:
            return count / window, count
        count += 1
    if count == MOST_COUNTED:
        return count / max(now - trace[-count], 1e-9), count
    return count / window, count


class WaitingObserved(NamedTuple):
    """The mean of the samples, its change in a second, and the seconds that they cover."""

    mean: float
    trend: float
    covered: float


class WaitingSamples:
    """How many requests waited beside busy workers, sampled at short intervals."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def add(self, waiting: int, now: float) -> None:
        self._samples.append((now, waiting))

    def clear(self) -> None:
        """Forget the samples: the number of workers has changed, and with it what waits."""
        self._samples.clear()

    def mean(self, now: float, window: float) -> WaitingObserved:
        """Return the observations within the window; zeros before half of a window."""
        samples = self._samples
        while samples and samples[0][0] < now - window:
            samples.popleft()
        covered = now - samples[0][0] if samples else 0.0
        if covered < window / 2.0:
            return WaitingObserved(0.0, 0.0, 0.0)
        values = [waiting for _, waiting in samples]
        half = len(values) // 2
        trend = (fmean(values[-half:]) - fmean(values[:half])) / (covered / 2.0)
        return WaitingObserved(fmean(values), trend, covered)
