"""The connections that send jobs to one model version, one after the other.

A *regular* connection is open, its last two requests went to this version, and the last arrived less than
a while ago. When each of them already has a job here, no further client can join. Pollers of
/ping, scrapers and the idle connections of a proxy's pool are no regulars.
"""

from collections import OrderedDict

from daemon.batching.traffic.survival import Survival
from daemon.core.job import Caller, Home, Job

LEAST_WHILE = 1.0  # seconds
WHILE = 10.0  # times the median from a reply to the next arrival


class Standing:
    """One connection at one version: its jobs there, and whether it is a regular."""

    __slots__ = ("last", "outstanding", "regular", "replied", "requests", "waiting")

    def __init__(self) -> None:
        self.regular = False
        self.last = 0.0  # when its last request arrived
        self.requests = 0  # consecutive requests to this version
        self.waiting = 0  # its jobs in the queue
        self.outstanding = 0  # its jobs in the queue and in flight
        self.replied = float("-inf")  # when its last job ended

    def __repr__(self) -> str:
        return f"<Standing {'regular' if self.regular else 'stranger'} {self.waiting}/{self.outstanding}>"


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
        self._known: dict[Caller, Standing] = {}
        self._regulars: OrderedDict[Standing, None] = OrderedDict()  # the last to have sent a request is last

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
        standing = None if caller is None else self._known.get(caller)
        if standing is None:
            standing = Standing()
            if caller is not None:
                caller.enter(self._home)
                self._known[caller] = standing
        elif not standing.regular:
            standing.regular = True
            self._regulars[standing] = None
            self.strangers -= standing.waiting
            self.present += standing.outstanding > 0
        else:
            self._regulars.move_to_end(standing)
        job.standing = standing
        standing.last = job.arrived
        standing.requests += 1
        standing.outstanding += 1
        standing.waiting += 1  # as in `queued`
        if not standing.regular:
            self.strangers += 1
        elif standing.outstanding == 1:
            self.present += 1

    def queued(self, job: Job) -> None:
        """Count a new or requeued job as waiting."""
        standing: Standing = job.standing
        standing.waiting += 1
        self.strangers += not standing.regular

    def taken(self, job: Job) -> None:
        """Count a job as no longer waiting."""
        standing: Standing = job.standing
        standing.waiting -= 1
        self.strangers -= not standing.regular

    def ended(self, job: Job, now: float) -> None:
        standing: Standing = job.standing
        standing.outstanding -= 1
        standing.replied = now
        if standing.regular and not standing.outstanding:
            self.present -= 1

    def left(self, caller: Caller) -> Standing:
        """Forget a connection that closed, or went to another version; return its record."""
        standing = self._known.pop(caller)
        if standing.regular:
            self._demote(standing)
        return standing

    def forget_silent(self, now: float, turnarounds: Survival) -> None:
        """Demote the regulars that have been silent for a while."""
        while self._regulars:
            standing = next(iter(self._regulars))
            silent = now - standing.last
            if silent <= LEAST_WHILE or silent <= WHILE * turnarounds.median:
                return
            if standing.outstanding:
                standing.last = now  # the client waits for us, not we for the client
                self._regulars.move_to_end(standing)
            else:
                self._demote(standing)

    def _demote(self, standing: Standing) -> None:
        standing.regular = False
        del self._regulars[standing]
        self.strangers += standing.waiting
        self.present -= standing.outstanding > 0
