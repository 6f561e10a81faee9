"""A job: one request waiting for its answer; and its batch, reply and outcome.

              ┌RETURN (once, if started)┐
              ▼                         │
            QUEUED ───────SEND───────▶ SENT
              │                         │
              └──────────▶ ENDED ◀──────┘
                ANSWER, EXPIRE, ABANDON

A job ends exactly once: answered, expired at its deadline, or abandoned because its client
left. While it is SENT, pieces of its answer may go to the client; from the first on, the job cannot return.
A worker that dies, or hangs with a batch of several, gives its jobs back. A job that the worker had started
may return to the queue once; one that was only sent ahead, while the worker was busy, returns as if it had
never been sent.
`attempt` counts how often a job was sent, without such returns. A worker may still run an expired job:
the answer is dropped. Only the dispatcher sends, requeues and ends jobs.
"""

import math
from collections.abc import Callable, Sequence
from enum import IntEnum, auto
from typing import Any, Final, NamedTuple, Protocol

from tsctl.daemon.core.arena import SHARED_FROM, Payload
from tsctl.daemon.core.client import NOBODY
from tsctl.daemon.core.errors import DaemonError, Stopping
from tsctl.daemon.core.states import IllegalTransition
from tsctl.daemon.core.timing import Timing


class Whose(IntEnum):
    """Whose doing the end of a request was."""

    CLIENT = auto()
    MODEL = auto()
    DAEMON = auto()


class Ending(IntEnum):
    """How requests end, and whose doing that is: the one table of what counts for or against a version of a model.

        ending      the request …                                                               whose     verdict
        ANSWERED    was answered below 400                                                      model     good
        FAILED      was answered 500 or more: its handler failed, or its worker                 model     bad
        OVERDUE     had no time left by an operator's limit, or after the failure of a worker   model     bad
        REFUSED     was not run: the version has no room, or no worker                          model     bad
        REJECTED    was answered 400 to 499, or 501: its input, its key, its rate or its size           client    none
        GIVEN_UP    had no time left by its client's own deadline                               client    none
        LEFT        was cancelled, or its client left                                           client    none
        STOPPED     was refused or cut off because an operator stops the version                daemon    none

    Rollouts, alerts, the recent errors of a version and the answers that a shadow's are compared with read this table,
    for every protocol. The worker of a request that ended by its client's doing may go on; the end of that counts as
    ever (`VersionMetrics.unheard`), so that a client hides nothing either. Readiness, restarts, autoscaling and what is
    learned of batches read no endings but workers: their ends, and the times of batches that they have run to the end
    (`Fate`). Arrivals are demand, however they end.
    """

    ANSWERED = auto()
    FAILED = auto()
    OVERDUE = auto()
    REFUSED = auto()
    REJECTED = auto()
    GIVEN_UP = auto()
    LEFT = auto()
    STOPPED = auto()


WHOSE: dict[Ending, Whose] = {
    Ending.ANSWERED: Whose.MODEL,
    Ending.FAILED: Whose.MODEL,
    Ending.OVERDUE: Whose.MODEL,
    Ending.REFUSED: Whose.MODEL,
    Ending.REJECTED: Whose.CLIENT,
    Ending.GIVEN_UP: Whose.CLIENT,
    Ending.LEFT: Whose.CLIENT,
    Ending.STOPPED: Whose.DAEMON,
}


def counts(ending: Ending) -> bool:
    """Return whether an ending counts for or against its version."""
    return WHOSE[ending] is Whose.MODEL


def ending_of_status(status: int) -> Ending:
    """Return the ending of a request that was answered with this status, by a handler or in its place."""
    if status < 400:
        return Ending.ANSWERED
    return Ending.FAILED if status >= 500 else Ending.REJECTED


def ending_of_refusal(error: DaemonError) -> Ending:
    """Return the ending of a request that was answered with this error, and not run."""
    if 400 <= error.status < 500 or error.status == 501:  # 501: the client asks for what is not served
        return Ending.REJECTED
    return Ending.STOPPED if isinstance(error, Stopping) else Ending.REFUSED


def ending_of_deadline(*, by_client: bool, failed: bool) -> Ending:
    """Return the ending of a request whose deadline has passed.

    Args:
        by_client: the deadline is the client's own, and an operator's limit allows more.
        failed: a worker has hung or ended with the request before.
    """
    return Ending.GIVEN_UP if by_client and not failed else Ending.OVERDUE


# Plain classes: compiled, they are C structures, and reading an attribute of one is no look-up.
class Reply:
    """The answer to one job; not changed once it is made.

    Args:
        status: HTTP status, 200 unless the handler or an error chose another.
        error: TorchServe's `type` word if this is an error, and `body` its message; else empty.
        retry_after: seconds.
        traceback: of the handler's exception, for operators; never part of the answer.
    """

    def __init__(
        self,
        status: int,
        body: bytes,
        phrase: str = "",
        headers: Sequence[tuple[str, str]] = (),
        error: str = "",
        retry_after: int | None = None,
        traceback: str = "",
    ) -> None:
        self.status = status
        self.body = body
        self.phrase = phrase
        self.headers = headers
        self.error = error
        self.retry_after = retry_after
        self.traceback = traceback

    def __repr__(self) -> str:
        return f"<Reply {self.status} {self.error} {self.body!r}>"

    def with_headers(self, headers: Sequence[tuple[str, str]]) -> "Reply":
        """Return the same reply with other headers."""
        return Reply(self.status, self.body, self.phrase, headers, self.error, self.retry_after, self.traceback)


def error_reply(error: DaemonError) -> Reply:
    """Return the answer that tells an error."""
    return Reply(error.status, str(error).encode(), error=error.kind, retry_after=error.retry_after)


class Flow(Protocol):
    """The source of one answer's pieces, which produces no more than the client reads.

    Attributes:
        wanted: a client waits for the pieces; set by the receiver of one.
    """

    wanted: bool

    def drained(self) -> None:
        """Note that all pieces so far have been written."""

    def refuse(self) -> None:
        """Note that further pieces are not wanted."""


class Piece(Reply):
    """A piece of an answer that is not complete yet.

    Args:
        unread: empty, or why the answer ends here: its client does not read.
    """

    def __init__(
        self,
        status: int,
        body: bytes,
        phrase: str = "",
        headers: Sequence[tuple[str, str]] = (),
        error: str = "",
        flow: Flow | None = None,
        unread: str = "",
    ) -> None:
        super().__init__(status, body, phrase, headers, error)
        self.flow = flow
        self.unread = unread

    def with_headers(self, headers: Sequence[tuple[str, str]]) -> "Piece":
        return Piece(self.status, self.body, self.phrase, headers, self.error, self.flow, self.unread)


MAX_ATTEMPTS = 2


# IntEnum: the hash of a plain Enum is a Python call, eight of them for each request (0.8 µs).
class JobPhase(IntEnum):
    QUEUED = auto()  # waits for a worker
    SENT = auto()  # in flight at a worker
    ENDED = auto()  # answered, expired or abandoned


class JobEvent(IntEnum):
    SEND = auto()
    RETURN = auto()
    ANSWER = auto()
    EXPIRE = auto()
    ABANDON = auto()


TRANSITIONS: Final[dict[JobPhase, dict[JobEvent, JobPhase]]] = {
    JobPhase.QUEUED: {
        JobEvent.SEND: JobPhase.SENT,
        JobEvent.ANSWER: JobPhase.ENDED,
        JobEvent.EXPIRE: JobPhase.ENDED,
        JobEvent.ABANDON: JobPhase.ENDED,
    },
    JobPhase.SENT: {
        JobEvent.RETURN: JobPhase.QUEUED,
        JobEvent.ANSWER: JobPhase.ENDED,
        JobEvent.EXPIRE: JobPhase.ENDED,
        JobEvent.ABANDON: JobPhase.ENDED,
    },
    JobPhase.ENDED: {},
}


class Param(NamedTuple):
    """One named part of a request body: a form field, a file, or the whole as `body`."""

    name: str
    content_type: str  # as the client sent it; empty for none
    value: Payload


class TimeBudget(NamedTuple):
    """The time that a request may take, all in all.

    Attributes:
        seconds: how long, more than 0.
        since: when its headers were complete, on the daemon's clock.
        source: who set the limit, in words.
        by_client: the client did, and the model's own limit allows more.
    """

    seconds: float
    since: float
    source: str
    by_client: bool = False


class Home(Protocol):
    """The destination of a connection's jobs: one version of a model."""

    def left(self, caller: "Caller") -> None:
        """Note that the connection closed, or now sends its jobs to another version."""


class Caller:
    """A connection, as seen by the versions that receive its jobs; each connection has one."""

    __slots__ = ("_home",)

    def __init__(self) -> None:
        self._home: Home | None = None

    def enter(self, home: Home) -> None:
        """Note that the connection's latest job went to this version."""
        if self._home is not None:
            self._home.left(self)
        self._home = home

    def close(self) -> None:
        """Note that the connection is closed."""
        if self._home is not None:
            self._home.left(self)
            self._home = None


class JobWatcher(Protocol):
    """Sees the course of one job, always after its client has seen it."""

    def piece(self, piece: Reply) -> None:
        """Note that a piece of the answer has gone to the client."""

    def ended(self, job: "Job", reply: Reply | None) -> None:
        """Note that the job has ended, with this answer; None if its client left."""

    def refused(self, job: "Job", error: DaemonError) -> None:
        """Note that the job was not accepted."""


class Job:
    """One request to one model version.

    Attributes:
        id: the request id that the client sees.
        arrived: when the request was complete, on the daemon's clock.
        params: the parts of its body; none of a large one that has ended: a worker has leases of its own.
        size: bytes of its parameters; counts against the queue's limit.
        exclusive: the job asks to run alone, and goes before jobs that do not.
        low_priority: others go before it, for a while.
        budget, deadline: the time that the job may take, and its end; None and inf for no limit.
        queued, sent: when the job was last queued, and last sent to a worker (0.0 before the first time); set by the
            caller.
        attempt: how often the job was sent to a worker, without the times that the worker went away before starting.
        begun: a piece of its answer has gone to the client.
        ending: how the job ended; None before.
        failed: a worker has hung or ended with the job, which was queued again.
        held_up: its worker may have waited for a client that reads slowly: its own, or another of the batch.
        unnamed: its client named no version; metrics tell these apart, as TorchServe does.
        caller: the connection of the request, or None.
        client: in whose share the job counts; `NOBODY` where none is counted.
        caller_stats: the version's record of that connection; opaque here.
        held: since when the job waits beside an idle worker, or None.
        timing: receives the times of the job's batch, or None.
        streamed: bytes of its answer that were sent in pieces.
        infer: the head of an inference request, whose tensors are the parameters.
        mark: what its version's dispatcher notes about it.
        apart: what its version's dispatcher knows it by, where it must run alone, as it may end workers; else None.
        watchers: those who see what becomes of the job; none for most.
    """

    __slots__ = (
        "_deliver",
        "_stream",
        "apart",
        "arrived",
        "attempt",
        "begun",
        "budget",
        "caller",
        "caller_stats",
        "client",
        "deadline",
        "ending",
        "exclusive",
        "failed",
        "headers",
        "held",
        "held_up",
        "id",
        "infer",
        "low_priority",
        "mark",
        "params",
        "phase",
        "queued",
        "sent",
        "size",
        "streamed",
        "timing",
        "unnamed",
        "watchers",
    )  # fmt: skip

    def __init__(
        self,
        id: str,  # noqa: A002
        params: Sequence[Param],
        headers: Sequence[tuple[str, str]],
        arrived: float,
        deliver: Callable[[Reply], None],
        stream: Callable[[Reply], None] | None = None,
        *,
        unnamed: bool = False,
        exclusive: bool = False,
        low_priority: bool = False,
        budget: TimeBudget | None = None,
        caller: Caller | None = None,
    ) -> None:
        self.id = id
        self.params = params
        self.headers = headers
        self.arrived = self.queued = arrived
        self.sent = 0.0
        self.low_priority = low_priority
        self.budget = budget
        self.deadline = math.inf if budget is None else budget.since + budget.seconds
        self.unnamed = unnamed
        self.size = 0
        for param in params:  # compiled, a loop is cheaper than `sum`
            self.size += len(param.value)
        self.exclusive = exclusive
        self.attempt = 0
        self.phase = JobPhase.QUEUED
        self.begun = self.failed = self.held_up = False
        self.ending: Ending | None = None
        self.caller = caller
        self.caller_stats: Any = None
        self.held: float | None = None
        self.apart: bytes | None = None
        self.streamed = 0
        self.timing: Timing | None = None
        self.infer: object = None
        self.mark: object = None
        self.client = NOBODY
        self.watchers: tuple[JobWatcher, ...] = ()
        self._deliver = deliver
        self._stream = stream

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.phase.name} attempt={self.attempt} size={self.size}>"

    @property
    def runs_alone(self) -> bool:
        """Whether the job needs its own batch: by its own wish, or after the death of a worker with it or its equal."""
        return self.exclusive or self.attempt > 0 or self.apart is not None

    @property
    def may_return(self) -> bool:
        return self.phase is JobPhase.SENT and self.attempt < MAX_ATTEMPTS and not self.begun

    def send(self) -> None:
        self._advance(JobEvent.SEND)
        self.attempt += 1

    def give_back(self) -> None:
        """Return to the queue: the worker went away.

        Raises:
            IllegalTransition: no worker has the job, its attempts are used up, or a piece of its answer was sent.
        """
        if not self.may_return:
            raise IllegalTransition(f"RETURN in {self.phase.name} after attempt {self.attempt}")
        self._advance(JobEvent.RETURN)

    def give_back_unstarted(self) -> None:
        """Return to the queue: the worker went away without having started the job."""
        self._advance(JobEvent.RETURN)
        self.attempt -= 1

    def answer(self, reply: Reply, ending: Ending | None = None) -> None:
        """End the job with `reply`; the ending is that of its status, unless another is given."""
        self._advance(JobEvent.ANSWER)
        self.ending = ending_of_status(reply.status) if ending is None else ending
        self._deliver(reply)
        for watcher in self.watchers:
            watcher.ended(self, reply)

    def expire(self, reply: Reply, ending: Ending = Ending.OVERDUE) -> None:
        """End the job at its deadline, with `reply`."""
        self._advance(JobEvent.EXPIRE)
        self.ending = ending
        self._deliver(reply)
        for watcher in self.watchers:
            watcher.ended(self, reply)

    def stream(self, piece: Reply) -> None:
        """Send the client a piece of the answer; status and headers count in the first.

        Raises:
            IllegalTransition: no worker has the job, or its client does not take pieces.
        """
        if self.phase is not JobPhase.SENT or self._stream is None:
            raise IllegalTransition(f"a piece of an answer in {self.phase.name}")
        self.begun = True
        self.streamed += len(piece.body)
        self._stream(piece)
        for watcher in self.watchers:
            watcher.piece(piece)

    def abandon(self) -> None:
        """End the job without an answer: its client left."""
        self._advance(JobEvent.ABANDON)
        self.ending = Ending.LEFT
        for watcher in self.watchers:
            watcher.ended(self, None)

    def _advance(self, event: JobEvent) -> None:
        try:
            self.phase = TRANSITIONS[self.phase][event]
        except KeyError:
            raise IllegalTransition(f"{event.name} in {self.phase.name}") from None
        if self.size >= SHARED_FROM and self.phase is JobPhase.ENDED:
            self.params = ()  # its lease ends; a worker that was sent the job has one of its own


class Batch:
    """Jobs that run together.

    Args:
        reason: why the batch was due; see `tsctl.daemon.batching.policies.collector`.
        sent: when, on the daemon's clock.
        first: its worker has answered none before; such a batch takes longer than others.
        oldest: when its first job was queued, same clock.
        queued: jobs that were left in the queue when it was sent.
        limit: the most jobs that it might have had.
    """

    def __init__(
        self,
        id: int,  # noqa: A002
        jobs: Sequence[Job],
        reason: str,
        sent: float = 0.0,
        first: bool = False,
        oldest: float = 0.0,
        queued: int = 0,
        limit: int = 1,
    ) -> None:
        self.id = id
        self.jobs = jobs
        self.reason = reason
        self.sent = sent
        self.first = first
        self.oldest = oldest
        self.queued = queued
        self.limit = limit

    def __repr__(self) -> str:
        return f"<Batch {self.id} of {len(self.jobs)} ({self.reason})>"


class Fate(IntEnum):
    """The end of a job at a worker.

    A job that returns to the queue has used up one of its attempts, unless the worker had not started it.

    ================  ============================================  ===================  =====================
    fate              why the worker ended                          the job may return   else it is answered
    ================  ============================================  ===================  =====================
    `ANSWERED`        the worker goes on                            no                   with the reply
    `LATE`            killed: the response timeout of this batch    if `retry`           with the reply
    `CANCELLED`       the worker goes on; the row was dropped       no: nobody waits     with nothing
    `UNSTARTED`       any reason                                    yes, not charged     as lost
    `STOPPED`         the daemon ended a worker not needed          if `retry`           503, if the model stops
    `LOST`            the daemon killed it for any other reason     if `retry`           as lost
    `KILLED`          SIGKILL from outside, or too much memory      if `retry`           as killed
    `CRASHED`         of itself, with other jobs that had started   if `retry`           as lost; a suspect
    `CRASHED_ALONE`   of itself, and had started no other job       if `retry`           as lost; a suspect
    ================  ============================================  ===================  =====================
    """

    ANSWERED = auto()
    LATE = auto()
    CANCELLED = auto()
    UNSTARTED = auto()
    STOPPED = auto()
    LOST = auto()
    KILLED = auto()
    CRASHED = auto()
    CRASHED_ALONE = auto()


class Outcome:
    """The result of one job of a batch: answered, or returned unanswered by the worker.

    Args:
        reply: the answer; of a late job, the answer if it may not return; otherwise None.
        fate: the same for all jobs of a batch.
        retry: the job's handler may be run again with the job.
        reason: for a returned job: the worker's end, in words.
    """

    def __init__(
        self, job: Job, reply: Reply | None = None, fate: Fate = Fate.ANSWERED, retry: bool = False, reason: str = ""
    ) -> None:
        self.job = job
        self.reply = reply
        self.fate = fate
        self.retry = retry
        self.reason = reason

    def __repr__(self) -> str:
        return f"<Outcome {self.fate.name} of {self.job!r}: {self.reply!r}>"
