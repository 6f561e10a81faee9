"""Find the jobs that have no time left: they have waited too long, or cannot be answered in time.

waits       expires when now + l(1) ≥ its deadline, l(1) being the expected time of a batch of one
            or when it has waited for the queue timeout
is with a   expires at its deadline; the worker goes on, and its late answer is dropped
worker
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from tsctl.daemon.batching.queue import JobDeadlines, Queue
from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.core.endings import Ending, ending_of_deadline
from tsctl.daemon.core.errors import AnsweredTooLate, RequestExpired, WaitedTooLong
from tsctl.daemon.core.job import Job, JobPhase
from tsctl.daemon.core.timing import duration

QUEUE_TIMEOUT = "queueTimeout"
JUST = 1.0  # seconds


class Expired(NamedTuple):
    """An expired job.

    Attributes:
        where: the job's place, "queue" or "worker".
    """

    job: Job
    where: str
    error: RequestExpired
    ending: Ending


class Expiry:
    """The deadlines and the queue timeout of one version's jobs.

    Args:
        queue: the waiting jobs.
        traffic: knows how long batches take.

    Attributes:
        queue_timeout: seconds that a job may wait, each time in the queue; inf for no limit.
        sent: the deadlines of the jobs in flight.
    """

    def __init__(self, queue: Queue, traffic: Traffic) -> None:
        self.queue_timeout = math.inf
        self.sent = JobDeadlines()
        self._queue = queue
        self._traffic = traffic

    def __repr__(self) -> str:
        return f"<Expiry of {len(self._queue.deadlines)} waiting and {len(self.sent)} sent jobs>"

    @property
    def watching(self) -> bool:
        """Whether any job may expire at some time."""
        return self.queue_timeout < math.inf or bool(self.sent) or bool(self._queue.deadlines)

    def next(self, now: float, busy: bool) -> float:
        """Return when to check again, inf for never: no job expires before. `busy`: a batch is running."""
        due = self.sent.next
        waiting = self._queue.deadlines.next
        if waiting < math.inf:
            due = min(due, waiting - self._needed(now, busy))
        if self.queue_timeout < math.inf:
            due = min(due, *(job.queued + self.queue_timeout for job in self._oldest()), math.inf)
        return due

    def due(self, now: float, busy: bool) -> Iterator[Expired]:
        """Yield each expired job; the caller ends it before asking for the next."""
        needed = self._needed(now, busy)
        while (job := self._queue.deadlines.first(now, needed)) is not None:
            assert job.budget is not None
            error = WaitedTooLong(job.budget.seconds, job.budget.source, _spent(job, now), needed)
            yield Expired(job, "queue", error, _ending(job))
        while (waiter := self._overdue(now)) is not None:
            spent = f"it waited {duration(now - waiter.queued)}"
            yield Expired(waiter, "queue", WaitedTooLong(self.queue_timeout, QUEUE_TIMEOUT, spent), Ending.OVERDUE)
        while (job := self.sent.first(now)) is not None:
            assert job.budget is not None
            late = AnsweredTooLate(job.budget.seconds, job.budget.source, _spent(job, now))
            yield Expired(job, "worker", late, _ending(job))

    def _needed(self, now: float, busy: bool) -> float:
        """Return the expected seconds of a batch of one, 0.0 if unknown."""
        traffic = self._traffic
        if not busy and now - traffic.last_return > JUST:
            return 0.0
        return min(traffic.times.of(1), traffic.last_time)

    def _overdue(self, now: float) -> Job | None:
        """Return a job that has waited for the queue timeout, None if there is none."""
        if self.queue_timeout == math.inf:
            return None
        return next((job for job in self._oldest() if job.queued + self.queue_timeout <= now), None)

    def _oldest(self) -> Iterator[Job]:
        """Yield the longest-waiting job of each lane, and the parked jobs."""
        yield from self._queue.oldest()
        yield from self._queue.parked


def _ending(job: Job) -> Ending:
    assert job.budget is not None
    return ending_of_deadline(by_client=job.budget.by_client, failed=job.failed)


def _spent(job: Job, now: float) -> str:
    """Describe how a job's time was spent."""
    assert job.budget is not None
    running = job.phase is JobPhase.SENT
    parts = []
    arriving = job.arrived - job.budget.since
    if arriving >= 0.001:
        parts.append(f"took {duration(arriving)} to arrive")
    if job.attempt > running:
        parts.append("was run by a worker that died")
    parts.append(f"waited {duration((job.sent if running else now) - job.queued)} in the queue")
    if running:
        parts.append(f"has run for {duration(now - job.sent)}")
    *first, last = parts
    return f"it {', '.join(first)} and {last}" if first else f"it {last}"
