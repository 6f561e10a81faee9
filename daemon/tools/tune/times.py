"""Measured batch times of the real model: medians with linear interpolation, their spread, and a fit."""

import random
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from daemon.tools.tune.overlap import ALONE, Contention


@dataclass(frozen=True, slots=True)
class Fit:
    """l(n) = a + c·n in seconds (l(b) = αb + β of Nexus, SOSP '19).

    `residual` is the largest relative distance of a median from the fit.
    """

    a: float
    c: float
    residual: float


class Curve:
    """Batch sizes → seconds, for one number of busy workers.

    Args:
        measured: batch size → seconds of each batch; at least one size with at least one batch.
    """

    def __init__(self, measured: Mapping[int, Sequence[float]]) -> None:
        self.sizes = sorted(measured)
        self.medians = [median(measured[size]) for size in self.sizes]
        self._ratios = [
            [seconds / middle for seconds in measured[size]]
            for size, middle in zip(self.sizes, self.medians, strict=True)
        ]

    def at(self, size: float) -> float:
        """Return a batch's seconds: interpolated linearly between the medians, extrapolated beyond them."""
        sizes, medians = self.sizes, self.medians
        if len(sizes) == 1:
            return medians[0] * max(1.0, size / sizes[0])  # without a second size, assume that batching saves nothing
        index = min(max(bisect_left(sizes, size), 1), len(sizes) - 1)
        low, high = sizes[index - 1], sizes[index]
        slope = (medians[index] - medians[index - 1]) / (high - low)
        return max(medians[index] + slope * (size - high), min(medians[0], medians[-1]))

    def ratio(self, size: float, chance: random.Random) -> float:
        """Draw the ratio of a batch's time to the median, from the batches of the nearest measured size."""
        index = min(bisect_left(self.sizes, size), len(self.sizes) - 1)
        return chance.choice(self._ratios[index])

    def fit(self) -> Fit:
        """Fit by least squares over the medians, weighted by 1/median² so that small batches count as much."""
        if len(self.sizes) == 1:
            return Fit(0.0, self.medians[0] / self.sizes[0], 0.0)
        weights = [1 / seconds**2 for seconds in self.medians]
        total = sum(weights)
        x = sum(w * size for w, size in zip(weights, self.sizes, strict=True)) / total
        y = sum(w * seconds for w, seconds in zip(weights, self.medians, strict=True)) / total
        points = list(zip(weights, self.sizes, self.medians, strict=True))
        c = sum(w * (size - x) * (seconds - y) for w, size, seconds in points) / sum(
            w * (size - x) ** 2 for w, size, _ in points
        )
        a = y - c * x
        if a < 0.0:
            a, c = (
                0.0,
                sum(w * size * seconds for w, size, seconds in points) / sum(w * size**2 for w, size, _ in points),
            )
        residual = max(abs(seconds - a - c * size) / seconds for _, size, seconds in points)
        return Fit(a, c, residual)


@dataclass(frozen=True, slots=True)
class PlacementTimes:
    """The batch times of one placement: `workers` workers with `threads` threads each.

    Attributes:
        curves: number of busy workers → curve; has 1 and `workers`.
        beside: the mutual slowdown of requests on their way and batches.
    """

    workers: int
    threads: int
    curves: Mapping[int, Curve]
    beside: Contention = ALONE

    @property
    def busy(self) -> Curve:
        """The curve with all workers busy, which determines the capacity."""
        return self.curves[self.workers]

    def capacity(self, batch_size: int) -> float:
        """Return the requests a second of full batches, one after the other, on all workers."""
        return self.workers * batch_size / self.busy.at(batch_size)

    # daemon.tools.simulator.world.Service

    def seconds(self, size: float, busy: int, chance: random.Random) -> float:
        """Draw the time of a batch that starts as the `busy`-th of the running ones, in seconds."""
        alone = self.curves[1]
        if self.workers == 1 or busy <= 1:
            return alone.at(size) * alone.ratio(size, chance)
        share = (min(busy, self.workers) - 1) / (self.workers - 1)
        middle = alone.at(size) * (1 - share) + self.busy.at(size) * share
        return middle * self.busy.ratio(size, chance)
