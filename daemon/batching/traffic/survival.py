"""The distribution of a waiting time, as a histogram that forgets: P(T > t), and the residual P(T > t | T > silence).

28 buckets, equal on a logarithmic scale from 0.1 ms to 20 s; the last takes all longer times. Within
a bucket the values are assumed to be spread evenly.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Final

FIRST = 0.0001  # seconds, the upper edge of the first bucket
LAST = 20.0
BUCKETS: Final = 28
EDGES: Final = tuple(FIRST * math.pow(LAST / FIRST, index / (BUCKETS - 1)) for index in range(BUCKETS))
WIDTHS: Final = tuple(high - low for low, high in zip((0.0, *EDGES), EDGES, strict=False))
FORGETTING: Final = 0.995
_RESCALE: Final = 1e12  # of the growing weight: well inside a float, so old values lose nothing


class Survival:
    """An empirical survival function. Each value counts 0.995 of the next one: about the last two hundred decide."""

    def __init__(self) -> None:
        self._counts = [0.0] * BUCKETS
        self._sum = 0.0
        self._weight = 1.0  # of the next value; it grows, instead of all others shrinking
        self._total = 0.0

    def __repr__(self) -> str:
        return f"<Survival of {self.effective:.1f} values, rate {self.rate:.3g}/s>"

    @property
    def effective(self) -> float:
        """The effective number of values, at most 1/(1 − 0.995)."""
        return self._total / self._weight * FORGETTING if self._total else 0.0

    @property
    def rate(self) -> float:
        """One over the mean, in values a second; 0.0 without values."""
        return self._total / self._sum if self._sum else 0.0

    def add(self, seconds: float) -> None:
        weight = self._weight
        self._counts[bisect_left(EDGES, seconds, 0, BUCKETS - 1)] += weight
        self._sum += weight * seconds
        self._total += weight
        self._weight = weight / FORGETTING
        if weight > _RESCALE:
            self._counts = [count / weight for count in self._counts]
            self._sum /= weight
            self._total /= weight
            self._weight /= weight

    def after(self, seconds: float) -> float:
        """Return the weight of values later than `seconds`."""
        index = bisect_left(EDGES, seconds)
        share = (EDGES[index] - seconds) / WIDTHS[index] if index < BUCKETS else 0.0
        if index >= BUCKETS - 1:
            return self._counts[-1] * max(share, FIRST)  # hardly any: but a silence has to end some time
        return sum(self._counts[index + 1 :]) + self._counts[index] * share

    def later(self, seconds: float) -> Iterator[tuple[float, float]]:
        """Yield each edge after `seconds` in order, and the weight of values above it."""
        index = bisect_right(EDGES, seconds)
        above = sum(self._counts[index:])
        for edge, count in zip(EDGES[index:], self._counts[index:], strict=True):
            above -= count
            yield edge, above

    @property
    def median(self) -> float:
        """The median in seconds, rounded up to the edge of a bucket; 0.0 without values."""
        half = self._total / 2
        return next((edge for edge, above in self.later(0.0) if above <= half), LAST) if half else 0.0
