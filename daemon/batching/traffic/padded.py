"""Predict how long a batch takes whose jobs are padded to the longest of them: a text model's, for example.

    l(n, longest) = per_batch + n·(per_job + per_byte·(longest - typical))

The slope `per_byte` is learned by least squares on n and n·longest, with forgetting. `per_batch` and `per_job` are
those of `BatchTimes`, which learns from times that are corrected to batches of the typical longest job. A constant part
of a job's bytes, such as a JSON document around the text, is absorbed by `per_job`.
"""

from collections.abc import Sequence

from tsctl.daemon.batching.traffic.times import CLIP, FORGETTING, BatchTimes
from tsctl.daemon.core.job import Job

RIDGE = 0.001  # of the mean squared: added to the variance of sizes, which may be 0


class PaddedTimes:
    """The model.

    Args:
        times: learn from the corrected times, which `add` returns.

    Attributes:
        per_byte: seconds that each job of a batch takes longer for each byte of the longest; 0.0 until known.
        typical: the mean length of the longest job of a batch, in bytes.
    """

    def __init__(self, times: BatchTimes) -> None:
        self.per_byte = 0.0
        self.typical = 0.0
        self._times = times
        self._weight = 0.0
        self._origin = 0  # of lengths: the first one, so that a constant part does not hide the differences
        # Weighted means, and sums of products around them: n, v = n·(longest - origin), y = seconds.
        self._n = self._v = self._y = 0.0
        self._nn = self._nv = self._vv = self._ny = self._vy = 0.0

    def __repr__(self) -> str:
        return f"<PaddedTimes {self._times!r}, {self.per_byte * 1e6:.3g} µs a byte over {self.typical:.0f}>"

    @property
    def per_batch(self) -> float:
        """The seconds of a batch that depend on neither its size nor its lengths; 0.0 until known.

        While all batches had one size, this is at most what a batch of jobs without bytes would take.
        """
        times = self._times
        empty = times.of(self._n) - self._n * self.per_byte * self.typical
        return times.per_batch if times.spread or empty <= 0.0 else min(times.per_batch, empty)

    def of(self, jobs: Sequence[Job]) -> float:
        """Predict the seconds of a batch of these jobs, at least one; 0.0 while nothing is known."""
        return self.per_batch + len(jobs) * self.of_jobs([max([job.size for job in jobs])])[0]

    def of_jobs(self, lengths: Sequence[int]) -> list[float]:
        """Return, for each length, the seconds of a job in a batch whose longest has that, without the fixed time."""
        times = self._times
        known = times.per_job
        if not times.spread and self._n:
            known += (times.per_batch - self.per_batch) / self._n
        return [max(0.0, known + self.per_byte * (length - self.typical)) for length in lengths]

    def add(self, count: int, longest: int, seconds: float) -> float:
        """Learn from a batch of `count` jobs; return the seconds that it would have taken with a typical longest job.

        Args:
            longest: bytes of the longest job.
            seconds: as measured in the worker.
        """
        if self._times.known:
            seconds = min(seconds, CLIP * (self.per_batch + count * self.of_jobs([longest])[0]))
        if not self._weight:
            self._origin = longest
        self._weight = self._weight * FORGETTING + 1.0
        step = 1.0 / self._weight
        self.typical += (longest - self.typical) * step
        volume = count * (longest - self._origin)
        n, v, y = count - self._n, volume - self._v, seconds - self._y
        self._n += n * step
        self._v += v * step
        self._y += y * step
        left = 1.0 - step  # West's update of weighted sums of products
        self._nn = FORGETTING * self._nn + left * n * n
        self._nv = FORGETTING * self._nv + left * n * v
        self._vv = FORGETTING * self._vv + left * v * v
        self._ny = FORGETTING * self._ny + left * n * y
        self._vy = FORGETTING * self._vy + left * v * y
        nn = self._nn + RIDGE * self._weight * self._n * self._n
        determinant = self._vv * nn - self._nv * self._nv
        if determinant > 0.0:
            self.per_byte = max(0.0, (self._vy * nn - self._ny * self._nv) / determinant)
        return max(seconds / CLIP, seconds - self.per_byte * count * (longest - self.typical))
