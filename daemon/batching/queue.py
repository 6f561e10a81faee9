"""The jobs of one model version that wait for a worker: in lanes, bounded in number and in bytes; and in time (Expiry).

    alone    jobs that run alone: before all others, so no batch ever has one in its middle
    apart    jobs that are kept apart, and run alone, too; a lane of their own, first in, first out
    aged     of low priority, after letting others go before for long enough
    normal
    low      of low priority

Parked jobs are in no lane: they wait until the dispatcher knows whether to keep them apart, count against the limits,
and may expire or leave. `len` and the head ignore them.

The head is that of the first lane that is not empty; within a lane, first in is first out.
"""

import heapq
import itertools
import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import chain, islice, takewhile
from typing import Any, NamedTuple, Protocol

from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.core.errors import AnsweredTooLate, QueueFull, RequestExpired, WaitedTooLong
from tsctl.daemon.core.job import Ending, Job, JobPhase, ending_of_deadline
from tsctl.daemon.core.timing import duration

_FEW = 64  # empty entries that are not worth sweeping


class JobDeadlines:
    """Jobs by their deadline: the earliest first, removable at any time.

    A heap with lazy deletion: removed entries are emptied (as a rule a job leaves long before its deadline), and swept
    when more than half are empty. So a job costs O(log n), one without a deadline nothing, and no removed job (with its
    body) is kept alive.
    """

    def __init__(self) -> None:
        self._heap: list[list[Any]] = []  # [deadline, a unique number, job or None]
        self._entries: dict[Job, list[Any]] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"<JobDeadlines of {len(self)} jobs, the next at {self.next:.3f}>"

    @property
    def next(self) -> float:
        """The earliest deadline, inf if there is none."""
        heap = self._heap
        while heap:
            deadline: float = heap[0][0]
            if heap[0][2] is not None:
                return deadline
            heapq.heappop(heap)
        return math.inf

    def add_job(self, job: Job) -> None:
        """Add a job, if it has a deadline."""
        if job.budget is not None:
            entry = self._entries[job] = [job.deadline, next(self._numbers), job]
            heapq.heappush(self._heap, entry)

    def discard(self, job: Job) -> None:
        """Remove a job, if present."""
        if job.budget is None or job not in self._entries:
            return
        self._entries.pop(job)[2] = None
        if len(self._heap) > 2 * len(self._entries) + _FEW:
            self._heap = list(self._entries.values())
            heapq.heapify(self._heap)

    def first(self, now: float, margin: float = 0.0) -> Job | None:
        """Return the job with the earliest deadline, if that is at most `margin` seconds away."""
        first = self.next
        if first == math.inf or first - margin > now:  # written as the timer is set: to the last bit
            return None
        job: Job = self._heap[0][2]
        return job


USUAL_PATIENCE = 0.4  # seconds
Lane = OrderedDict[Job, None]  # a linked list: both ends and the middle in O(1)


def patience(max_delay: float) -> float:
    """Return the seconds that a job of low priority lets others go first; `USUAL_PATIENCE` for a delay of 0."""
    return 4 * max_delay or USUAL_PATIENCE


class BatchChoice(Protocol):
    """Chooses the jobs of the next batch among those that wait.

    Attributes:
        look_ahead: batches of waiting jobs that it wants to see.
    """

    look_ahead: int

    def choose(self, jobs: Sequence[Job], batch_size: int, now: float) -> list[Job]:
        """Return the jobs of the next batch; jobs[0], the oldest, is among them."""


class Queue:
    """A bounded queue from which any job can be removed in constant time, or O(log n) for one with a deadline.

    Jobs that run alone stand before all others, so no batch ever has one in its middle.

    Args:
        name: the model, for messages.
        max_jobs, max_bytes: limits; a job larger than `max_bytes` is accepted when the queue is empty.

    Attributes:
        patience: seconds that a job of low priority lets others go first.
        deadlines: of the waiting jobs, parked or not.
        parked: jobs that must not be sent yet.
        choice: chooses the jobs of a batch; None for by age.
    """

    def __init__(self, name: str, max_jobs: int, max_bytes: int, patience: float = math.inf) -> None:
        self._name = name
        self.max_jobs = max_jobs
        self.max_bytes = max_bytes
        self.patience = patience
        self.bytes = 0
        self._count = 0
        self.deadlines = JobDeadlines()
        self._alone, self._apart = Lane(), Lane()
        self._aged, self._normal, self._low = Lane(), Lane(), Lane()
        self._lanes = (self._alone, self._apart, self._aged, self._normal, self._low)
        self.parked = Lane()
        self.choice: BatchChoice | None = None

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Queue {len(self)}/{self.max_jobs} jobs {self.bytes}/{self.max_bytes} bytes>"

    @property
    def head(self) -> Job:
        return next(iter(self._alone or self._apart or self._aged or self._normal or self._low))

    @property
    def waiting(self) -> int:
        """The number of jobs, parked or not."""
        return self._count + len(self.parked)

    @property
    def low(self) -> int:
        """The number of jobs of low priority that have not waited long enough to go first."""
        return len(self._low)

    def oldest(self) -> Iterator[Job]:
        """Yield the job of each lane that has waited longest."""
        if self._alone:
            yield next(reversed(self._alone))  # each new one goes before the others
        for lane in (self._apart, self._aged, self._normal, self._low):
            if lane:
                yield next(iter(lane))

    def of_size(self, size: int) -> list[Job]:
        """Return the jobs in the lanes with so many bytes, except those that ask to run alone."""
        return [job for lane in self._lanes for job in lane if job.size == size and not job.exclusive]

    def since(self) -> tuple[float | None, float]:
        """Return since when a job has been held beside an idle worker, None if none has; and when the first arrived."""
        if not (self._aged or self._low):
            head = self.head
            return head.held, head.arrived
        oldest = list(self.oldest())
        held = min((job.held for job in oldest if job.held is not None), default=None)
        return held, min(job.arrived for job in oldest)

    def hold(self, now: float) -> None:
        """Note that all jobs wait beside an idle worker; jobs already held keep their time."""
        for jobs in (reversed(self._normal), chain(reversed(self._low), reversed(self._aged))):
            for job in jobs:
                if job.held is not None:
                    break  # and so are all before it
                job.held = now

    def age(self, now: float) -> None:
        """Let jobs of low priority go first that have waited long enough."""
        while self._low:
            job = next(iter(self._low))
            if now - job.queued < self.patience:
                return
            del self._low[job]
            self._aged[job] = None

    def put(self, job: Job, ahead: int = 0) -> None:
        """Add a job: at the end of its lane, or at the head of all if it asks to run alone.

        Args:
            ahead: jobs that wait elsewhere, with a busy worker; they count against the limit of jobs.

        Raises:
            QueueFull: a limit would be exceeded; the queue is as before.
        """
        self._check(job, ahead)
        self._add(job, first=job.exclusive)

    def park(self, job: Job, ahead: int = 0) -> None:
        """As `put`, and keep the job from being sent until it is admitted."""
        self._check(job, ahead)
        self._park(job)

    def withdraw(self, job: Job) -> None:
        """Park a job that waits in a lane."""
        self.remove(job)
        self._park(job)

    def admit(self, job: Job) -> None:
        """Move a job to its place by time of arrival, or among those that are kept apart. Limits do not apply."""
        self.remove(job)
        self.put_back(job)

    def _park(self, job: Job) -> None:
        self.parked[job] = None
        self.bytes += job.size
        if job.budget is not None:
            self.deadlines.add_job(job)

    def _check(self, job: Job, ahead: int) -> None:
        if self._count + len(self.parked) + ahead >= self.max_jobs:
            wait = "1 request waits" if self.max_jobs == 1 else f"{self.max_jobs} requests wait"
            raise QueueFull(f'The queue of model "{self._name}" is full: {wait}. Try again later.')
        if self.bytes + job.size > self.max_bytes and (self._count or self.parked):
            raise QueueFull(
                f'The queue of model "{self._name}" is full: {self.bytes} of {self.max_bytes} bytes wait,'
                f" and this request has {job.size}. Try again later."
            )

    def put_back(self, job: Job) -> None:
        """Return a job to the head of its lane. Limits do not apply to an accepted job."""
        lane = self._add(job, first=True)
        if lane is self._alone:
            return
        # Several workers may give back jobs sent ahead to them, the one with the oldest first.
        after = iter(lane)
        next(after)
        older = list(takewhile(lambda other: other.queued < job.queued, after))
        for other in reversed(older):
            lane.move_to_end(other, last=False)
        if job.held is None:  # otherwise jobs behind it would be held for longer, and `hold` would stop there
            following = next(islice(lane, len(older) + 1, None), None)
            job.held = None if following is None else following.held

    def remove(self, job: Job) -> None:
        if self.parked and job in self.parked:
            del self.parked[job]
            self._left(job)
            return
        for lane in self._lanes:
            if job in lane:
                del lane[job]
                self._gone(job)
                return
        raise KeyError(job)

    def take(self, count: int) -> list[Job]:
        """Remove and return up to `count` jobs, each the head of those left."""
        taken: list[Job] = []
        for lane in self._lanes:
            while lane and len(taken) < count:
                taken.append(lane.popitem(last=False)[0])
        for job in taken:
            self._gone(job)
        return taken

    def take_batch(self, count: int, now: float) -> list[Job]:
        """As `take`, where `choice` is set of the jobs that it chooses; the head, which runs not alone, is one."""
        choice = self.choice
        if choice is None:
            return self.take(count)
        jobs = list(islice(chain(self._aged, self._normal), choice.look_ahead * count))
        if len(jobs) < count:
            jobs += islice(self._low, count - len(jobs))
        chosen = choice.choose(jobs, count, now)
        for job in chosen:
            self.remove(job)
        return chosen

    def _add(self, job: Job, *, first: bool) -> Lane:
        if job.exclusive or job.attempt:
            lane = self._alone
        elif job.apart is not None:
            lane = self._apart
        elif job.low_priority:
            # Among the aged ones only if it came before one of them: others before it may still be in the lane `low`.
            lane = self._aged if first and self._aged and job.queued <= self._youngest_aged() else self._low
        else:
            lane = self._normal
        lane[job] = None
        if first:
            lane.move_to_end(job, last=False)
        self._count += 1
        self.bytes += job.size
        if job.budget is not None:
            self.deadlines.add_job(job)
        return lane

    def _youngest_aged(self) -> float:
        return next(reversed(self._aged)).queued

    def _gone(self, job: Job) -> None:
        self._count -= 1
        self._left(job)

    def _left(self, job: Job) -> None:
        self.bytes -= job.size
        if job.budget is not None:
            self.deadlines.discard(job)


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
    """Finds the jobs that have no time left: they have waited too long, or cannot be answered in time.

    waits       expires when now + l(1) ≥ its deadline, l(1) being the expected time of a batch of one
                or when it has waited for the queue timeout
    is with a   expires at its deadline; the worker goes on, and its late answer is dropped
    worker

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
