"""Predict how long a batch takes, learned from finished batches: by its size, by its longest job, and beside others."""

import math
from collections.abc import Sequence
from typing import Final

from tsctl.daemon.core.job import Job

FORGETTING: Final = 0.98
CLIP: Final = 3.0  # times the prediction
SPREAD: Final = 0.05  # of the mean squared: the variance of sizes from which a slope can be estimated


class BatchTimes:
    """The linear model: l(n) = per_batch + per_job·n.

    The model is that of Nexus (l(b) = αb + β; Shen et al., SOSP '19). The fit is recursive least squares with
    exponential forgetting, from running sums. Until sizes have spread, the slope is unknown: the first time is halved
    between the two, and later times change only the level. A batch that took ten times too long (a page fault, a
    garbage collection) counts as three times the prediction.

    Attributes:
        per_batch, per_job: in seconds, both 0.0 until `known`.
    """

    def __init__(self) -> None:
        self.per_batch = 0.0
        self.per_job = 0.0
        self.known = False
        self.spread = False  # sizes have differed, so that the slope is from data
        self._w = self._x = self._y = self._xx = self._xy = 0.0

    def __repr__(self) -> str:
        guess = "" if self.spread else ", a guess"
        return f"<BatchTimes {self.per_batch * 1000:.3g} ms + {self.per_job * 1000:.3g} ms a job{guess}>"

    def of(self, size: float) -> float:
        """Predict the seconds of a batch; 0.0 while nothing is known."""
        return self.per_batch + self.per_job * size

    @property
    def mean(self) -> float:
        """The mean seconds of the latest fifty batches or so; 0.0 while nothing is known."""
        return self._y / self._w if self._w else 0.0

    def learn_batch(self, size: int, seconds: float) -> None:
        """Learn from the time of a batch, in seconds as measured in the worker."""
        if not self.known:
            self.known = True
            self.per_batch, self.per_job = seconds / 2, seconds / 2 / size
        seconds = min(seconds, CLIP * self.of(size))
        self._w = self._w * FORGETTING + 1.0
        self._x = self._x * FORGETTING + size
        self._y = self._y * FORGETTING + seconds
        self._xx = self._xx * FORGETTING + size * size
        self._xy = self._xy * FORGETTING + size * seconds
        x, y = self._x / self._w, self._y / self._w
        variance = self._xx / self._w - x * x
        if variance > SPREAD * x * x:
            self.spread = True
            self.per_job = max(0.0, (self._xy / self._w - x * y) / variance)
            self.per_batch = y - self.per_job * x
            if self.per_batch < 0.0:
                self.per_batch, self.per_job = 0.0, y / x
        else:
            level = y / self.of(x)  # the known slope stays
            self.per_batch *= level
            self.per_job *= level


RIDGE = 0.001  # of the mean squared: added to the variance of sizes, which may be 0


class PaddedTimes:
    """The model of batches whose jobs are padded to the longest of them: a text model's, for example.

        l(n, longest) = per_batch + n·(per_job + per_byte·(longest - typical))

    The slope `per_byte` is learned by least squares on n and n·longest, with forgetting. `per_batch` and `per_job` are
    those of `BatchTimes`, which learns from times that are corrected to batches of the typical longest job. A constant
    part of a job's bytes, such as a JSON document around the text, is absorbed by `per_job`.

    Args:
        times: learn from the corrected times, which `learn_batch` returns.

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

    def learn_batch(self, count: int, longest: int, seconds: float) -> float:
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


SETTLED: Final = 8.0  # batches after which one more of its kind changes no decision …
NOTABLE: Final = 0.02  # … unless it changes the average by this share …
REVIEWED: Final = 64  # … and at every so many batches, since much may have been forgotten
MOST: Final = 16  # busy workers that are told apart
NEAR: Final = 0.4  # of a whole number: a batch counts for that number if the mean of busy workers is so near
KIND_FORGETTING: Final = 0.998  # of the weight of one kind of batch, at each batch of another kind …
AGES_BY_ONE: Final = 0.02  # … if that takes so many seconds, and less if shorter: many of a tiny model end each second
FORGOTTEN: Final = 0.3  # batches: a kind with less weight is unknown
ENOUGH: Final = 30.0  # batches: more are not counted …
LEAST_WEIGHT: Final = 0.1  # … and the latest counts at least so much
DISCOURAGED: Final = 0.25  # of the time: added for each failed attempt, which costs its jobs the maximum delay
CAUTION: Final = 1.5  # times the usual deviation, and …
DOUBT: Final = 0.1  # … of the time: a kind measured once may be so much shorter


class BatchKind:
    """Batches of one size beside as many busy workers.

    Attributes:
        seconds: their mean duration.
        count: the weight of that average in batches, as of the age `last`.
        misses: how often this kind was planned, and did not come about.
    """

    __slots__ = ("busy", "count", "last", "misses", "seconds", "size")

    def __init__(self, busy: int, size: int) -> None:
        self.busy = busy
        self.size = size
        self.seconds = 0.0
        self.count = 0.0
        self.misses = 0.0
        self.last = 0.0

    def __repr__(self) -> str:
        return f"<{self.size} of {self.busy}: {self.seconds * 1000:.3g} ms, {self.count:.1f} times>"


def rounded(size: int) -> int:
    """Round down to one of eight sizes an octave: few enough to be searched linearly."""
    step = max(0, size.bit_length() - 4)
    return size >> step << step


class Together:
    """Predict how long batches take by size and by the number of busy workers, which may share cores or a GPU.

    A measured kind has the average of its latest batches, and is hoped to take a little less while these are few, but
    no less than a smaller one, or one beside fewer workers. Any other kind gets its lower bound, given that

        a larger batch, or more busy workers, make no batch faster, and
        half as large a batch, or half as many busy workers, make it at most twice as fast.

    So a kind that may be better is tried, is believed once measured, and is tried again when forgotten: after a
    thousand batches or so of other kinds, or some twenty seconds of shorter ones (optimism in the face of uncertainty,
    as in bandit algorithms).

    Args:
        times: predict batches of sizes that were not measured.

    Attributes:
        total: batches that were learned from.
        changes: incremented with each change that may affect a decision.
        deviation: mean deviation of a batch from the average of its kind, as a share.
    """

    def __init__(self, times: BatchTimes) -> None:
        self.total = 0
        self._age = 0.0  # batches; tiny ones count as parts of one
        self.changes = 0
        self.deviation = 0.0
        self._times = times
        self._kinds: dict[tuple[int, int], BatchKind] = {}
        self._bounds: list[tuple[float, int, int]] = []  # of known kinds, the greatest first: seconds, busy, size …
        self._bounds_total = 0  # … after so many batches

    def __repr__(self) -> str:
        return f"<Together {' '.join(repr(kind) for kind in self._kinds.values())}>"

    def measured(self) -> list[BatchKind]:
        """Return the known kinds, in order."""
        return [self._kinds[key] for key in sorted(self._kinds) if self._known(self._kinds[key])]

    def learn_batch(self, busy: float, size: int, seconds: float) -> None:
        """Learn from a batch of `seconds`; `busy` workers were busy in the mean, this one included."""
        number = max(1, round(busy))
        if not -NEAR <= busy - number <= NEAR:
            return
        self.total += 1
        self._age += min(1.0, seconds / (number * AGES_BY_ONE))
        seconds = self._for_number(busy, number, size, seconds)
        kind = self._kind(number, size)
        if kind.count:
            share = min(abs(seconds / kind.seconds - 1.0), 1.0) if kind.seconds else 0.0
            self.deviation += (share - self.deviation) * max(LEAST_WEIGHT / 2, 1.0 / self.total)
        kind.count = min(kind.count + 1.0, ENOUGH)
        step = (seconds - kind.seconds) * max(LEAST_WEIGHT, 1.0 / kind.count)
        kind.seconds += step
        if kind.count < SETTLED or abs(step) > NOTABLE * kind.seconds or not self.total % REVIEWED:
            self.changes += 1

    def missed(self, busy: int, size: int) -> None:
        """Note that batches of this kind were planned, and did not come about."""
        self._kind(busy, size).misses += 1.0
        self.changes += 1

    def hoped(self, busy: int, size: float) -> float:
        """Return the fewest seconds that a batch may take, as far as is known."""
        low = int(size)
        seconds = self._hoped(min(busy, MOST), low)
        return seconds if low == size else seconds + (size - low) * (self._hoped(min(busy, MOST), low + 1) - seconds)

    def expected(self, busy: float, size: int) -> float:
        """Return the seconds that a batch most likely takes."""
        low = max(1, min(int(busy), MOST))
        seconds = self._expected(low, size)
        if busy <= low or low == MOST:
            return seconds
        return seconds + (busy - low) * (self._expected(low + 1, size) - seconds)

    def _for_number(self, busy: float, number: int, size: int, seconds: float) -> float:
        """Return the batch's duration had a whole number of workers been busy all the time.

        For a share of its time the batch ran as fast as those beside one worker more, or less.
        """
        share = abs(busy - number)
        other = self._kinds.get((number + (1 if busy > number else -1), rounded(size)))
        if other is None or not share or not self._known(other):
            return seconds
        rate = 1.0 / seconds - share / other.seconds
        bound = seconds * number / busy
        whole = (1.0 - share) / rate if rate > 0.0 else bound
        return min(max(whole, min(seconds, bound)), max(seconds, bound))

    def _hoped(self, busy: int, size: int) -> float:
        kind = self._kinds.get((busy, rounded(size)))
        if kind is not None and self._known(kind):
            return self._least(busy, size, scaled=False)
        return self._least(busy, size) * (1.0 + DISCOURAGED * (0.0 if kind is None else self._misses(kind)))

    def _expected(self, busy: int, size: int) -> float:
        kind = self._kinds.get((busy, rounded(size)))
        if kind is not None and self._known(kind):
            return kind.seconds
        return max(self._times.of(size), self._least(busy, size))

    def _least(self, busy: int, size: int, *, scaled: bool = True) -> float:
        """Return the greatest of the lower bounds from all known kinds.

        Args:
            scaled: also from kinds that are larger, or beside more workers, as parts of their times.
        """
        if self._bounds_total != self.total:
            known = [(kind, self._count(kind)) for kind in self._kinds.values()]
            bounds = [(self._at_best(each, count), each.busy, each.size) for each, count in known if count >= FORGOTTEN]
            self._bounds, self._bounds_total = sorted(bounds, reverse=True), self.total
        least = 0.0
        for bound, kind_busy, kind_size in self._bounds:
            if bound <= least:
                break  # it and all after it are no greater, whatever they are scaled by
            if not scaled and (size < kind_size or busy < kind_busy):
                continue
            if size < kind_size:
                bound *= size / kind_size
            if busy < kind_busy:
                bound *= busy / kind_busy
            least = max(least, bound)
        return least

    def _at_best(self, kind: BatchKind, count: float) -> float:
        return kind.seconds * max(0.5, 1.0 - (CAUTION * self.deviation + DOUBT) / math.sqrt(count))

    def _kind(self, busy: int, size: int) -> BatchKind:
        """Return the kind, to be changed: its weights are updated to now."""
        key = min(busy, MOST), rounded(size)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = BatchKind(*key)
        kind.count, kind.misses, kind.last = self._count(kind), self._misses(kind), self._age
        return kind

    def _count(self, kind: BatchKind) -> float:
        return kind.count * float(KIND_FORGETTING ** (self._age - kind.last))

    def _misses(self, kind: BatchKind) -> float:
        return kind.misses * float(KIND_FORGETTING ** (self._age - kind.last))

    def _known(self, kind: BatchKind) -> bool:
        return self._count(kind) >= FORGOTTEN
