"""The connections that send jobs to one model version, one after the other.

A *regular* connection is open, its last two requests went to this version, and the last arrived less than
a while ago. When each of them already has a job here, no further client can join. Pollers of
/ping, scrapers and the idle connections of a proxy's pool are no regulars.
"""

from collections import OrderedDict
from typing import Final

from tsctl.daemon.batching.traffic.survival import Survival
from tsctl.daemon.core.job import Caller, Home, Job

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
