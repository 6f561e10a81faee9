"""How long batches take by their size and by how many workers are busy: they may share cores, or a GPU.

What has been measured is an average of the latest. What has not is taken for as short as it can be, given that

    a larger batch, or more busy workers, make no batch faster, and
    half as large a batch, or half as many busy workers, make it at most twice as fast.

So what may be better is tried, is believed once it was, and is tried again when it is forgotten: after a thousand
batches or so of another kind.
"""

import math

from daemon.batching.learned.times import BatchTimes

SETTLED = 8.0  # batches after which one more of its kind changes no decision …
NOTABLE = 0.02  # … unless it changes the average by this share …
REVIEWED = 64  # … and at every so many batches, since much may have been forgotten
MOST = 16  # busy workers that are told apart
NEAR = 0.4  # of a whole number: so near is the mean of busy workers to a batch that says something of that number
FORGETTING = 0.998  # of what is known of one kind of batch, at each other one
FORGOTTEN = 0.3  # batches: what is known from less is not known
ENOUGH = 30.0  # batches: more are not counted …
LEAST_WEIGHT = 0.1  # … and the latest counts at least so much
DISCOURAGED = 0.05  # of the time: added for each time that it was tried in vain
CAUTION = 1.5  # times the usual deviation, and …
DOUBT = 0.1  # … of the time: so much shorter may that be which was measured once


class Kind:
    """Batches of one size beside as many busy workers.

    Attributes:
        seconds: that they take.
        count: of how many batches that is the average, as of the `last` one of all kinds when it was noted.
        misses: how often it was wanted, and did not come about.
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


def _rounded(size: int) -> int:
    """Round down to one of eight sizes an octave: few enough to be looked through."""
    step = max(0, size.bit_length() - 4)
    return size >> step << step


class Together:
    """Args: `times` predict batches of the sizes that were not measured.

    Attributes:
        total: batches that were learned from.
        changes: goes up with each change of what is known that may change a decision.
        deviation: of a batch from the average of its kind, as a share.
    """

    def __init__(self, times: BatchTimes) -> None:
        self.total = 0
        self.changes = 0
        self.deviation = 0.0
        self._times = times
        self._kinds: dict[tuple[int, int], Kind] = {}

    def __repr__(self) -> str:
        return f"<Together {' '.join(repr(kind) for kind in self._kinds.values())}>"

    def measured(self) -> list[Kind]:
        """Return the kinds that are known, in order."""
        return [self._kinds[key] for key in sorted(self._kinds) if self._known(self._kinds[key])]

    def add(self, busy: float, size: int, seconds: float) -> None:
        """Take the time of a batch; `busy` workers were, in the mean, this one included."""
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
        """Batches of this kind were wanted, and did not come about."""
        self._kind(busy, size).misses += 1.0
        self.changes += 1

    def hoped(self, busy: int, size: float) -> float:
        """Return the seconds that a batch may take at best, as far as is known."""
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
        """Return what the batch would have taken with a whole number of busy workers all the time.

        For a share of its time it was as fast as those beside one worker more, or less.
        """
        share = abs(busy - number)
        other = self._kinds.get((number + (1 if busy > number else -1), _rounded(size)))
        if other is None or not share or not self._known(other):
            return seconds
        rate = 1.0 / seconds - share / other.seconds
        bound = seconds * number / busy
        whole = (1.0 - share) / rate if rate > 0.0 else bound
        return min(max(whole, min(seconds, bound)), max(seconds, bound))

    def _hoped(self, busy: int, size: int) -> float:
        kind = self._kinds.get((busy, _rounded(size)))
        if kind is None:
            return self._least(busy, size)
        count = self._count(kind)
        if count >= FORGOTTEN:
            return self._at_best(kind, count)
        return self._least(busy, size) * (1.0 + DISCOURAGED * self._misses(kind))

    def _expected(self, busy: int, size: int) -> float:
        kind = self._kinds.get((busy, _rounded(size)))
        if kind is not None and self._known(kind):
            return kind.seconds
        return max(self._times.of(size), self._least(busy, size))

    def _least(self, busy: int, size: int) -> float:
        """The most of all lower bounds that the known kinds give."""
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

    def _at_best(self, kind: Kind, count: float) -> float:
        return kind.seconds * max(0.5, 1.0 - (CAUTION * self.deviation + DOUBT) / math.sqrt(count))

    def _kind(self, busy: int, size: int) -> Kind:
        """The kind, to be changed: what it says is as of now."""
        key = min(busy, MOST), _rounded(size)
        kind = self._kinds.get(key)
        if kind is None:
            kind = self._kinds[key] = Kind(*key)
        kind.count, kind.misses, kind.last = self._count(kind), self._misses(kind), self.total
        return kind

    def _count(self, kind: Kind) -> float:
        return kind.count * float(FORGETTING ** (self.total - kind.last))

    def _misses(self, kind: Kind) -> float:
        return kind.misses * float(FORGETTING ** (self.total - kind.last))

    def _known(self, kind: Kind) -> bool:
        return self._count(kind) >= FORGOTTEN
