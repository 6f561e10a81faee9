"""A histogram of plain numbers: the count of values in each bucket, and their sum."""

from bisect import bisect_left
from collections.abc import Sequence

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
BATCH_SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)


class Histogram:
    """Counts by bucket.

    Args:
        bounds: the largest value of each bucket, rising; one more bucket takes larger values.

    Attributes:
        counts: values in each bucket alone, `len(bounds) + 1` of them.
        sum: of all values.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add the counts of another histogram with the same bounds."""
        for index, count in enumerate(counts):
            self.counts[index] += count
        self.sum += total
