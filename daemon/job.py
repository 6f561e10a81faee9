"""A job: one request waiting for its answer. And what travels with it.

              ┌──────RETURN (once)──────┐
              ▼                         │
            QUEUED ───────SEND───────▶ SENT
              │                         │
              ├─ANSWER, ABANDON─▶ ENDED ◀─ANSWER, ABANDON

A job ends exactly once: answered, or abandoned because its client left. A worker that dies
gives its jobs back, and a job may return to the queue once; `attempt` says how often it was
sent. Only the dispatcher sends, requeues and ends jobs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

MAX_ATTEMPTS = 2


class Phase(Enum):
    QUEUED = auto()  # it waits for a worker
    SENT = auto()  # a worker has it
    ENDED = auto()  # it was answered or abandoned


class Event(Enum):
    SEND = auto()
    RETURN = auto()
    ANSWER = auto()
    ABANDON = auto()


TRANSITIONS: dict[Phase, dict[Event, Phase]] = {
    Phase.QUEUED: {Event.SEND: Phase.SENT, Event.ANSWER: Phase.ENDED, Event.ABANDON: Phase.ENDED},
    Phase.SENT: {Event.RETURN: Phase.QUEUED, Event.ANSWER: Phase.ENDED, Event.ABANDON: Phase.ENDED},
    Phase.ENDED: {},
}


class IllegalTransition(Exception):
    """A job was moved along an arrow that does not exist: a bug."""


class Param(NamedTuple):
    """One named part of a request body: a form field, a file, or the whole as `body`."""

    name: str
    content_type: str  # as the client sent it; empty if it sent none
    value: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one job.

    Attributes:
        status: HTTP status, 200 unless the handler or an error chose another.
        error: TorchServe's `type` word if this is an error, and `body` its message; else empty.
    """

    status: int
    body: bytes
    phrase: str = ""
    headers: Sequence[tuple[str, str]] = ()
    error: str = ""
    retry_after: int | None = None  # seconds


class Job:
    """One request to one model version.

    Attributes:
        id: the request id that the client sees.
        arrived: when the request was complete, on the daemon's clock.
        size: bytes of its parameters; counts against the queue's limit.
        attempt: how often it was sent to a worker.
    """

    __slots__ = ("_deliver", "arrived", "attempt", "headers", "id", "params", "phase", "size")

    def __init__(
        self,
        id: str,  # noqa: A002
        params: Sequence[Param],
        headers: Sequence[tuple[str, str]],
        arrived: float,
        deliver: Callable[[Reply], None],
    ) -> None:
        self.id = id
        self.params = params
        self.headers = headers
        self.arrived = arrived
        self.size = sum(len(param.value) for param in params)
        self.attempt = 0
        self.phase = Phase.QUEUED
        self._deliver = deliver

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.phase.name} attempt={self.attempt} size={self.size}>"

    @property
    def may_return(self) -> bool:
        return self.phase is Phase.SENT and self.attempt < MAX_ATTEMPTS

    def send(self) -> None:
        self._advance(Event.SEND)
        self.attempt += 1

    def give_back(self) -> None:
        if not self.may_return:
            raise IllegalTransition(f"RETURN in {self.phase.name} after attempt {self.attempt}")
        self._advance(Event.RETURN)

    def answer(self, reply: Reply) -> None:
        self._advance(Event.ANSWER)
        self._deliver(reply)

    def abandon(self) -> None:
        """Its client left: nobody is told anything."""
        self._advance(Event.ABANDON)

    def _advance(self, event: Event) -> None:
        try:
            self.phase = TRANSITIONS[self.phase][event]
        except KeyError:
            raise IllegalTransition(f"{event.name} in {self.phase.name}") from None


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs that travel together.

    Attributes:
        reason: why it was sent when it was; see `daemon.batching.collector`.
    """

    id: int
    jobs: Sequence[Job]
    reason: str

    def __repr__(self) -> str:
        return f"<Batch {self.id} of {len(self.jobs)} ({self.reason})>"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one job of a batch came back from a worker: answered, or returned unanswered.

    Attributes:
        reply: the answer, or None if the worker went away with the job.
        retry: whether a returned job may be run again.
        reason: for a returned job: what became of the worker, in words.
        killed: SIGKILL ended the worker, and we did not send it.
    """

    job: Job
    reply: Reply | None = None
    retry: bool = False
    reason: str = field(default="")
    killed: bool = False
