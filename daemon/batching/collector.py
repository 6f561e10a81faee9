"""The collector: decides when a batch is due, and how large.

A collector is a plain object. It is asked only while a worker is idle and a job waits, gets the
facts and the time, and answers `Send` or `Wait`. It knows no clock, no asyncio and no jobs, so
the same object serves in production, in tests and in simulations.

Reasons, as counted and shown for each batch:

    full        there were enough jobs for a whole batch
    delay       the maximum delay was over
    at_once     the policy does not wait
    stopping    the version is being shut down
    retry       a job whose worker died, alone
    solo        a job that travels alone: a question to the handler about itself
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Facts:
    """What a decision may depend on.

    Attributes:
        waiting: jobs in the queue, at least 1.
        oldest: when the first of them arrived, seconds on the clock of `now`.
        idle: workers that can take a batch now, at least 1.
        ready: workers with the model loaded.
        stopping: nothing new is accepted any more.
    """

    waiting: int
    oldest: float
    idle: int
    ready: int
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """Send this many jobs now, at least 1 and at most the batch size."""

    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again at this time, or when a job arrives or a worker comes free."""

    until: float


class Collector(Protocol):
    """One policy, for one model version."""

    name: str

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        """Say whether a batch is due."""

    def drained(self) -> None:
        """The queue is empty, though no batch was sent: the jobs' clients left."""

    def returned(self, size: int, seconds: float, now: float) -> None:
        """A batch came back; `seconds` as measured in the worker."""
