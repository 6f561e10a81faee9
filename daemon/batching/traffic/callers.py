"""The connections that send jobs to one model version, one after the other.

A *regular* connection is open, its last two requests went to this version, and the last arrived less than
a while ago. When each of them already has a job here, no further client can join. Pollers of
/ping, scrapers and the idle connections of a proxy's pool are no regulars.
"""

import math
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from tsctl.daemon.core.job import Caller, Home, Job
from tsctl.daemon.metrics.histogram import bucket_of

FIRST = 0.0001  # seconds, the upper edge of the first bucket
LAST = 20.0
BUCKETS: Final = 28
EDGES: Final = tuple(FIRST * math.pow(LAST / FIRST, index / (BUCKETS - 1)) for index in range(BUCKETS))
INNER_EDGES: Final = EDGES[:-1]  # longer times than the last are in the last bucket
WIDTHS: Final = tuple(high - low for low, high in zip((0.0, *EDGES), EDGES, strict=False))
FORGETTING: Final = 0.995
_RESCALE: Final = 1e12  # of the growing weight: well inside a float, so old values lose nothing


class Survival:
    """The distribution of a waiting time, as a histogram that forgets: P(T > t), and P(T > t | T > silence).

    28 buckets, equal on a logarithmic scale from 0.1 ms to 20 s; the last takes all longer times. Within a bucket the
    values are assumed to be spread evenly. Each value counts 0.995 of the next: about the last two hundred decide.
    """

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

    def add_time(self, seconds: float) -> None:
        weight = self._weight
        self._counts[bucket_of(INNER_EDGES, seconds)] += weight
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
        index = bucket_of(EDGES, seconds)
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
    def typical(self) -> float:
        """The mean in seconds of all values but pauses, of over `WHILE` times the median; 0.0 without values."""
        seconds, total, low, longest = 0.0, 0.0, 0.0, WHILE * self.median
        for edge, count in zip(EDGES, self._counts, strict=True):
            if low >= longest:
                break
            seconds += count * (low + edge) / 2
            total += count
            low = edge
        return seconds / total if total else 0.0

    def latest(self, count: float) -> float:
        """Return the expected longest of so many times, in seconds; 0.0 without values."""
        if not self._total:
            return 0.0
        seconds, at, come = 0.0, 0.0, 0.0
        for edge, above in self.later(0.0):
            now = max(0.0, 1.0 - above / self._total) ** count if above > 0.0 else 1.0
            seconds += (edge - at) * (1.0 - (come + now) / 2)
            at, come = edge, now
        return seconds

    @property
    def median(self) -> float:
        """The median in seconds, rounded up to the edge of a bucket; 0.0 without values."""
        half = self._total / 2
        return next((edge for edge, above in self.later(0.0) if above <= half), LAST) if half else 0.0


LEAST_WHILE: Final = 1.0  # seconds
WHILE: Final = 10.0  # times the median from a reply to the next arrival


class CallerStats:
    """One connection at one version: its jobs there, and whether it is a regular."""

    __slots__ = ("gone", "last", "outstanding", "regular", "replied", "requests", "waiting")

    def __init__(self) -> None:
        self.regular = False
        self.gone = False  # closed, or gone to another version
        self.last = 0.0  # when its last request arrived
        self.requests = 0  # consecutive requests to this version
        self.waiting = 0  # its jobs in the queue
        self.outstanding = 0  # its jobs in the queue and in flight
        self.replied = float("-inf")  # when its last job ended

    def __repr__(self) -> str:
        return f"<CallerStats {'regular' if self.regular else 'stranger'} {self.waiting}/{self.outstanding}>"


class Callers:
    """The connections of one version.

    Args:
        home: notified when a connection closes, or goes to another version.

    Attributes:
        present: regulars that have a job here, waiting or in flight.
        strangers: waiting jobs of connections that are no regulars.
    """

    def __init__(self, home: Home) -> None:
        self.present = 0
        self.strangers = 0
        self._home = home
        self._known: dict[Caller, CallerStats] = {}
        self._regulars: OrderedDict[CallerStats, None] = OrderedDict()  # the last to have sent a request is last

    def __repr__(self) -> str:
        return f"<Callers {self.present}/{self.regulars} regulars present, {self.open} open, {self.strangers} strange>"

    @property
    def open(self) -> int:
        """The number of connections whose last request went to this version."""
        return len(self._known)

    @property
    def regulars(self) -> int:
        return len(self._regulars)

    def arrived(self, job: Job) -> None:
        caller = job.caller
        caller_stats = None if caller is None else self._known.get(caller)
        if caller_stats is None:
            caller_stats = CallerStats()
            if caller is not None:
                caller.enter(self._home)
                self._known[caller] = caller_stats
        elif not caller_stats.regular:
            caller_stats.regular = True
            self._regulars[caller_stats] = None
            self.strangers -= caller_stats.waiting
            self.present += caller_stats.outstanding > 0
        else:
            self._regulars.move_to_end(caller_stats)
        job.caller_stats = caller_stats
        caller_stats.last = job.arrived
        caller_stats.requests += 1
        caller_stats.outstanding += 1
        caller_stats.waiting += 1  # as in `queued`
        if not caller_stats.regular:
            self.strangers += 1
        elif caller_stats.outstanding == 1:
            self.present += 1

    def queued(self, job: Job) -> None:
        """Count a new or requeued job as waiting."""
        caller_stats: CallerStats = job.caller_stats
        caller_stats.waiting += 1
        self.strangers += not caller_stats.regular

    def taken(self, job: Job) -> None:
        """Count a job as no longer waiting."""
        caller_stats: CallerStats = job.caller_stats
        caller_stats.waiting -= 1
        self.strangers -= not caller_stats.regular

    def ended(self, job: Job, now: float) -> None:
        caller_stats: CallerStats = job.caller_stats
        caller_stats.outstanding -= 1
        caller_stats.replied = now
        if caller_stats.regular and not caller_stats.outstanding:
            self.present -= 1

    def left(self, caller: Caller) -> CallerStats:
        """Forget a connection that closed, or went to another version; return its record."""
        caller_stats = self._known.pop(caller)
        caller_stats.gone = True
        if caller_stats.regular:
            self._demote(caller_stats)
        return caller_stats

    def forget_silent(self, now: float, turnarounds: Survival) -> None:
        """Demote the regulars that have been silent for a while."""
        while self._regulars:
            caller_stats = next(iter(self._regulars))
            silent = now - caller_stats.last
            if silent <= LEAST_WHILE or silent <= WHILE * turnarounds.median:
                return
            if caller_stats.outstanding:
                caller_stats.last = now  # the client waits for us, not we for the client
                self._regulars.move_to_end(caller_stats)
            else:
                self._demote(caller_stats)

    def _demote(self, caller_stats: CallerStats) -> None:
        caller_stats.regular = False
        del self._regulars[caller_stats]
        self.strangers += caller_stats.waiting
        self.present -= caller_stats.outstanding > 0
