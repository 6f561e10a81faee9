"""Predict how long batches take by size and by the number of busy workers, which may share cores or a GPU.

A measured kind has the average of its latest batches. Any other kind gets its lower bound, given that

    a larger batch, or more busy workers, make no batch faster, and
    half as large a batch, or half as many busy workers, make it at most twice as fast.

So a kind that may be better is tried, is believed once measured, and is tried again when forgotten: after a thousand
batches or so of other kinds (optimism in the face of uncertainty, as in bandit algorithms).
"""

import math
from typing import Final

from tsctl.daemon.batching.traffic.times import BatchTimes

SETTLED: Final = 8.0  # batches after which one more of its kind changes no decision …
NOTABLE: Final = 0.02  # … unless it changes the average by this share …
REVIEWED: Final = 64  # … and at every so many batches, since much may have been forgotten
MOST: Final = 16  # busy workers that are told apart
NEAR: Final = 0.4  # of a whole number: a batch counts for that number if the mean of busy workers is so near
FORGETTING: Final = 0.998  # of the weight of one kind of batch, at each batch of another kind
FORGOTTEN: Final = 0.3  # batches: a kind with less weight is unknown
ENOUGH: Final = 30.0  # batches: more are not counted …
LEAST_WEIGHT: Final = 0.1  # … and the latest counts at least so much
DISCOURAGED = 0.05  # of the time: added for each failed attempt
CAUTION = 1.5  # times the usual deviation, and …
DOUBT = 0.1  # … of the time: a kind measured once may be so much shorter


class BatchKind:
    """Batches of one size beside as many busy workers.

    Attributes:
        seconds: their mean duration.
        count: the weight of that average in batches, as of the batch number `last` of all kinds.
        misses: how often this kind was planned, and did not come about.
    """

    __slots__ = ("busy", "count", "last", "misses", "seconds", "size")

    def __init__(self, busy: int, size: int) -> None:
        self.busy = busy
        self.size = size
        self.seconds = 0.0
        self.count = 0.0
        self.misses = 0.0
        self.last = 0

    def __repr__(self) -> str:
        return f"<{self.size} of {self.busy}: {self.seconds * 1000:.3g} ms, {self.count:.1f} times>"


def rounded(size: int) -> int:
    """Round down to one of eight sizes an octave: few enough to be searched linearly."""
    step = max(0, size.bit_length() - 4)
    return size >> step << step


class Together:
    """Durations of batches by kind.

    Args:
        times: predict batches of sizes that were not measured.

    Attributes:
        total: batches that were learned from.
        changes: incremented with each change that may affect a decision.
        deviation: mean deviation of a batch from the average of its kind, as a share.
    """

    def __init__(self, times: BatchTimes) -> None:
        self.total = 0
        self.changes = 0
        self.deviation = 0.0
        self._times = times
        self._kinds: dict[tuple[int, int], BatchKind] = {}

    def __repr__(self) -> str:
        return f"<Together {' '.join(repr(kind) for kind in self._kinds.values())}>"

    def measured(self) -> list[BatchKind]:
        """Return the known kinds, in order."""
        return [self._kinds[key] for key in sorted(self._kinds) if self._known(self._kinds[key])]

    def add(self, busy: float, size: int, seconds: float) -> None:
        """Learn from a batch of `seconds`; `busy` workers were busy in the mean, this one included."""
        number = max(1, round(busy))
        if not -NEAR <= busy - number <= NEAR:
            return
        self.total += 1
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
        if kind is None:
            return self._least(busy, size)
        count = self._count(kind)
        if count >= FORGOTTEN:
            return self._at_best(kind, count)
        return self._least(busy, size) * (1.0 + DISCOURAGED * self._misses(kind))

    def _expected(self, busy: int, size: int) -> float:
        kind = self._kinds.get((busy, rounded(size)))
        if kind is not None and self._known(kind):
            return kind.seconds
        return max(self._times.of(size), self._least(busy, size))

    def _least(self, busy: int, size: int) -> float:
        """Return the greatest of the lower bounds from all known kinds."""
        least = 0.0
        for kind in self._kinds.values():
            count = self._count(kind)
            if count >= FORGOTTEN:
                bound = self._at_best(kind, count)
                if size < kind.size:
                    bound *= size / kind.size
                if busy < kind.busy:
                    bound *= busy / kind.busy
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
        kind.count, kind.misses, kind.last = self._count(kind), self._misses(kind), self.total
        return kind

    def _count(self, kind: BatchKind) -> float:
        return kind.count * float(FORGETTING ** (self.total - kind.last))

    def _misses(self, kind: BatchKind) -> float:
        return kind.misses * float(FORGETTING ** (self.total - kind.last))

    def _known(self, kind: BatchKind) -> bool:
        return self._count(kind) >= FORGOTTEN
