"""Calls that arrive together are submitted together, so that they share a batch.

grpc.aio accepts one call at a time: sixteen calls that a client sends at once come one by one, each in a turn of the
loop of its own, and some 100 µs after the other. Submitted one by one, nearly every one had a batch to itself, which
costs more than the call. So jobs are held while more calls are on their way:

    a head has come and its message has not     until it comes, or `LONGEST` has passed
    otherwise                                   for `QUIET` turns of the loop, in which the next head is accepted

Where no call had company since the last was submitted, none is held: the turns would cost a lone client 40 µs a call.
"""

from collections.abc import Callable

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Job
from tsctl.daemon.models.version import ModelVersion

QUIET = 4  # turns between the message of one call and the head of the next, if both have arrived
LONGEST = 0.002  # seconds that a job is held; the heads whose messages are late then are not waited for any more

Refused = Callable[[DaemonError], None]


class Arrivals:
    """The calls of a server that are arriving, and the jobs that are held for them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heads = 0  # calls whose messages have not come
        self._calls = 0  # calls whose messages have come, and that have not ended
        self._company = False  # there was more than one at a time since the last jobs were submitted
        self._held: dict[Job, tuple[ModelVersion, Refused]] = {}
        self._since = 0.0  # when the first of them came
        self._turns = 0  # until they are submitted; 0 while nobody counts
        self._timer: Timer | None = None

    def __repr__(self) -> str:
        return f"<Arrivals {self._heads} heads, {len(self._held)} jobs>"

    def head(self) -> None:
        """Note that a call has been accepted, and that its message will come."""
        self._heads += 1

    def message(self) -> None:
        """Note that the message of such a call has come."""
        if self._heads:
            self._heads -= 1
        self._calls += 1
        if self._calls + self._heads > 1:
            self._company = True
        if self._held:
            self._count()

    def end_call(self) -> None:
        """Note that a call whose message has come has ended."""
        self._calls -= 1

    def submit(self, model: ModelVersion, job: Job, refused: Refused) -> None:
        """Submit a job soon; `refused` is called with the error if the version does not accept it."""
        now = self._clock.now()
        if not self._held:
            self._since = now
        self._held[job] = (model, refused)
        if not self._company or now - self._since >= LONGEST:
            self._submit_all()
        else:
            self._count()

    def abandon(self, model: ModelVersion, job: Job) -> None:
        """End a job without an answer: its client left."""
        if self._held.pop(job, None) is None:
            model.abandon(job)
        else:
            job.abandon()

    def _count(self) -> None:
        if not self._turns:
            self._clock.soon(self._turn)
        self._turns = QUIET

    def _turn(self) -> None:
        if not self._held:
            self._turns = 0
        elif self._heads:  # the next message resumes
            self._turns = 0
            if self._timer is None:
                self._timer = self._clock.later(LONGEST, self._late)
        else:
            self._turns -= 1
            if self._turns:
                self._clock.soon(self._turn)
            else:
                self._submit_all()

    def _late(self) -> None:
        self._timer = None
        if self._held:
            self._heads = 0
            self._submit_all()

    def _submit_all(self) -> None:
        held, self._held = self._held, {}
        self._company = self._calls + self._heads > 1
        for job, (model, refused) in held.items():
            try:
                model.submit(job)
            except DaemonError as error:
                refused(error)
