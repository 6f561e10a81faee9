"""The collector: decides when a batch is due, and how large.

A collector is a plain object, asked only while a worker is idle and a job waits. Its method receives the
facts and the time, and returns `Send` or `Wait`. A collector has no clock, no asyncio and no jobs, so
the same object serves in production, in tests and in simulations.

Each batch has a reason, which is counted and shown; see daemon/tables.py.
"""

import math
from typing import Final, Protocol

import msgspec

from tsctl.daemon.batching.traffic.times import BatchTimes

SLACK = 0.003  # seconds kept between the expected end of a batch and a deadline


# Structs, not frozen dataclasses: made for each decision, at a tenth of the cost (measured at 93db4c3f).
class Facts(msgspec.Struct, frozen=True):
    """The inputs of a decision.

    Attributes:
        waiting: jobs in the queue, at least 1.
        idle: idle workers; at least 1 where a collector decides.
        held: since when a job has waited beside an idle worker, seconds on the clock of `now`; None if none has.
        deadline: when the first answer is due, same clock.
        arrived: when the first of the jobs arrived, same clock.
        stopping: new jobs are not accepted any more.
    """

    waiting: int
    idle: int
    held: float | None = None
    deadline: float = math.inf
    arrived: float = 0.0
    stopping: bool = False


def latest(facts: Facts, times: BatchTimes) -> float:
    """Return when the waiting jobs must be sent so that the first answer is in time; same clock, inf without deadlines.

    Return -inf if a deadline is set and the duration of a batch is unknown: then they must be sent at once.
    """
    if facts.deadline == math.inf:
        return math.inf
    return facts.deadline - times.of(facts.waiting) - SLACK if times.known else -math.inf


class Send(msgspec.Struct, frozen=True):
    """Send this many jobs now, cut evenly into batches for `over` idle workers; no batch exceeds the batch size."""

    count: int
    reason: str
    over: int = 1


class Wait(msgspec.Struct, frozen=True):
    """Ask again at this time, or when a job arrives or a worker becomes idle.

    A time that has passed means: after the input that has already arrived has been read.
    """

    until: float


class Collector(Protocol):
    """One policy, for one model version."""

    name: str

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        """Return whether a batch is due, and how large, or when to ask again."""

    def drained(self) -> None:
        """Note that the queue is empty although no batch was sent: the jobs' clients left."""


MARGIN: Final = 2.0  # batches: another one, and this one, have to end before the first deadline


def may_send_ahead(facts: Facts, ready: int, batch_size: int, seconds: float, now: float) -> bool:
    """Decide whether a worker gets a second batch while it runs one.

    The worker then starts the second batch without waking a process: about 45 µs saved each way. But committed jobs can
    neither move to another worker that becomes free earlier, nor wait for company. So only full batches are sent ahead,
    or halves of the clients (traffic/halves.py), and only while there is one for every ready worker; requests of low
    priority, which others may still overtake, do not count.

    Args:
        ready: workers with the model loaded, at least 1.
        batch_size: of a full batch, or of a half of the clients; at least 1.
        seconds: that such a batch is expected to take; 0.0 if unknown: then no deadline is risked.
        now: on the clock of `facts`.
    """
    if facts.deadline < math.inf and (not seconds or facts.deadline - now < MARGIN * seconds):
        return False
    return facts.waiting >= ready * batch_size
