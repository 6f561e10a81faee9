"""The dispatcher: brings the jobs of one model version to its workers, and ends them.

`_pump` is one synchronous function that matches the queue to idle workers; nothing else sends,
requeues or ends a job, so no half-states exist. The pump runs once per turn of the event loop, after
the bytes that have already arrived have become jobs.

A worker may get a second batch while it runs one, to start without waiting for the daemon; where batches
are formed by length only if they are short, or more wait than would be chosen from.

A job whose worker died returns to the head of the queue once, and then runs alone: if that job kills
workers, no other job is lost with it. The same holds for the jobs of a batch of several that exceeded
the response timeout. Jobs of a batch that the worker had not started are requeued unchanged.

A job that has no time left is answered then, by a timer if need be, waiting or running (`Expiry` of queue.py).

A job that is kept apart runs alone as well, at a worker that runs nothing else. No batch is sent ahead behind such a
job. Which jobs these are, subclasses decide; they override what is named at the end of the class.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import msgspec

from tsctl.daemon.batching.observer import RETURNED, UNHEARD, BatchObserver, BatchWatcher
from tsctl.daemon.batching.policies.collector import Collector, Facts, Send, may_send_ahead
from tsctl.daemon.batching.queue import Expiry, Queue
from tsctl.daemon.batching.traffic.traffic import BatchLog, Traffic
from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.errors import CutOff, DaemonError, WorkerDied, WorkerKilled
from tsctl.daemon.core.job import Batch, Ending, Fate, Job, JobPhase, Outcome, Reply, error_reply
from tsctl.daemon.core.quick_counter import QuickCounter
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.workers.engine import Worker
from tsctl.daemon.workers.pool import Pool

# Seconds of a batch formed by length that is sent ahead: before a shorter one the daemon and its clients take about
# half a millisecond, in which the worker waits, and that costs more than a better choice saves.
CHOSEN_AHEAD: Final = 0.005


class Alarm:
    """Calls at the earliest time that was set since the last call; a call that is no longer due does no harm."""

    def __init__(self, clock: Clock, call: Callable[[], None]) -> None:
        self._clock = clock
        self._call = call
        self._timer: Timer | None = None
        self._due = math.inf

    @property
    def armed(self) -> bool:
        """Whether a call is due at some time."""
        return self._timer is not None

    def set(self, due: float, now: float) -> None:
        """Call at `due`, unless a call is due earlier; inf for never."""
        if due < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = self._clock.later(max(0.0, due - now), self._ring)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due = None, math.inf

    def _ring(self) -> None:
        self._timer, self._due = None, math.inf
        self._call()


class Dispatcher:
    """Takes jobs by `submit`, sends batches to the workers, and takes outcomes back by `ended`.

    Args:
        traffic: notified of every arrival, batch and reply; collectors may learn from it.
        metrics: notified of every batch and answer.
        listeners: called after each batch, and when jobs have expired; shared with the model, which adds and removes.
        observer: notified of jobs that are not answered by a worker, or with a failure.

    Attributes:
        collector: the policy; may be replaced at any time.
        running: jobs in flight at the workers.
        expiry: finds the jobs that have no time left.
        reasons, sizes: how many batches were sent for each reason, and of each size.
        longest_hold: the most seconds that a job has waited beside an idle worker.
        expired: how many jobs had no time left, by where they were: "queue" or "worker".
        log: the latest batches that have ended.
        watchers: see each batch that comes back.
        share: rows for each place of a batch, where workers run row by row, all in one call.
    """

    share: ClassVar[int] = 1

    def __init__(
        self,
        queue: Queue,
        collector: Collector,
        workers: Pool,
        clock: Clock,
        traffic: Traffic,
        metrics: VersionMetrics | None = None,
        listeners: dict[Callable[[], None], None] | None = None,
        observer: BatchObserver | None = None,
    ) -> None:
        self.stopping = False
        self.running = 0
        self.reasons: Counter[str] = QuickCounter()
        self.sizes: Counter[int] = QuickCounter()
        self.longest_hold = 0.0
        self._all_busy_at = -math.inf  # when the last idle worker got work
        self.expired: Counter[str] = Counter()
        self.expiry = Expiry(queue, traffic)
        self.log = BatchLog(int(clock.now() * 1e6))
        self._queue = queue
        self.collector = collector
        self._traffic = traffic
        self._callers = traffic.callers
        self._workers = workers
        self._clock = clock
        self._metrics = metrics or VersionMetrics()
        self._listeners: dict[Callable[[], None], None] = {} if listeners is None else listeners
        self._observer = observer or BatchObserver()
        self.watchers: tuple[BatchWatcher, ...] = ()
        self._batch_ids = itertools.count(1)
        self._awake = False
        self._timer: Timer | None = None
        self._alarm = Alarm(clock, self._pump)  # for the next job that has no time left
        self._left: set[Job] = set()  # sent jobs whose client has gone

    def __repr__(self) -> str:
        return f"<Dispatcher {self.collector.name} {self._queue!r} running={self.running}>"

    def submit(self, job: Job) -> None:
        """Queue a job.

        Raises:
            QueueFull: a limit of the queue would be exceeded.
            DaemonError: the job is refused; see subclasses.
        """
        queue = self._queue
        # Jobs sent ahead wait, too; they are counted only near the limit.
        ahead = self._workers.unstarted if queue.waiting + self.running >= queue.max_jobs else 0
        self._enqueue(job, ahead)
        self._traffic.arrived(job)
        if not self._awake:
            self.wake()

    def abandon(self, job: Job) -> None:
        """Drop a job whose client left: a queued job is removed, a running one is not retried."""
        if job.phase is JobPhase.QUEUED:
            self._take_out(job, self._clock.now())
            if job.runs_alone:  # others may have waited behind it beside free places
                self.wake()
            job.abandon()
        elif job.phase is JobPhase.SENT:
            self._left.add(job)
            self.expiry.sent.discard(job)
            self._workers.cancel(job)

    def wake(self) -> None:
        """Schedule `_pump` in this turn of the loop: a job arrived or a worker became idle."""
        if not self._awake:
            self._awake = True
            self._clock.soon(self._pump)

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        """Take a batch back from a worker: one outcome per job."""
        fate = outcomes[0].fate
        answered = fate is Fate.ANSWERED
        self._workers.take_back(worker, answered)
        now = self._clock.now()
        self.running -= len(batch.jobs)
        busy = self._traffic.back(batch, self._workers.busy, now)
        if answered or (fate is Fate.LATE and not outcomes[0].retry):
            self._traffic.returned(batch, seconds, now)
            self._metrics.returned(batch, seconds, now)
        failed = 0
        if answered:
            for outcome in reversed(outcomes):
                job = outcome.job
                if job.timing is not None:
                    began = now - seconds if batch.reason == "ahead" else batch.sent
                    job.timing.note_batch(began - job.arrived, seconds, len(batch.jobs))
                if self._end(outcome, now) >= 500:
                    failed += 1
            self._traffic.learn_batch(batch, seconds, now, busy, self._workers.ready)
        elif fate is Fate.CANCELLED:
            self._end(outcomes[0], now)
        else:  # reversed: each goes to the head, so the oldest ends first in line
            ends = [self._end(outcome, now) for outcome in reversed(outcomes)]
            ends.reverse()
            failed = len(ends)
            self._observer.lost(worker, outcomes, ends)
        for watcher in self.watchers:
            watcher.returned(worker.pid, batch, outcomes, seconds, now)
        if fate is not Fate.UNSTARTED:
            self.log.note(batch, worker.pid, seconds, failed, now)
        if self._queue.waiting:  # a parked job may expire, too
            self.wake()
        for listener in tuple(self._listeners):
            listener()

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:  # noqa: ARG002 - the job knows its client
        """Forward a piece of an answer, unless the client has gone or the job has expired."""
        if job.phase is JobPhase.SENT and job not in self._left:
            job.stream(piece)

    def late(self, worker: Worker, job: Job, reply: Reply) -> None:  # noqa: ARG002 - the job's batch still ends
        """Answer a job whose worker has said nothing of it for too long."""
        if job.phase is JobPhase.SENT and job not in self._left:
            now = self._clock.now()
            self.expiry.sent.discard(job)
            self._leave_running(job)
            self._callers.ended(job, now)
            self._metrics.answered(job, reply.status, now, job.streamed)
            self._observer.failed(job, reply)
            job.answer(reply)

    def refuse_all(self, error: DaemonError) -> None:
        """Answer all waiting jobs with an error: no worker will run them."""
        now = self._clock.now()
        for job in list(self._queue.parked):
            self._take_out(job, now)
            self._refuse(job, error)
        for job in self._take(len(self._queue)):
            self._callers.ended(job, now)
            self._refuse(job, error)
        self.collector.drained()

    def worker_gone(self, worker: Worker, why: str) -> None:
        """Note that a worker has ended, after its batches have come back."""

    def close(self) -> None:
        """Cancel the timers, which would keep the removed version alive until the last deadline."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._alarm.cancel()

    def _end(self, outcome: Outcome, now: float) -> int:
        """End or return a job; return the status of its answer, or `RETURNED`, or `UNHEARD`."""
        job = outcome.job
        if job.phase is JobPhase.ENDED:
            self._metrics.unheard(outcome, now)
            return UNHEARD  # expired
        if job.budget is not None:
            self.expiry.sent.discard(job)
        fate, refusal = outcome.fate, self._refusal_after(outcome)
        unstarted = fate is Fate.UNSTARTED
        if outcome.retry and job not in self._left and job.may_return and (not refusal or unstarted):
            if unstarted:
                job.give_back_unstarted()  # the job has waited all the time
            else:
                job.give_back()
                job.queued = now
                job.failed = job.failed or fate is not Fate.STOPPED
                self._metrics.returned_begun()
            self._queue.put_back(job)
            self._callers.queued(job)
            return RETURNED
        self._callers.ended(job, now)
        if self._left and job in self._left:
            self._left.discard(job)
            job.abandon()
            self._metrics.unheard(outcome, now)
            return UNHEARD
        reply = outcome.reply
        ending: Ending | None = None
        if reply is None:
            reply, ending = reply_to_lost(outcome, self.stopping, refusal)
        elif reply.status >= 500 and fate is Fate.ANSWERED:
            self._observer.failed(job, reply)
        self._metrics.answered(job, reply.status, now, len(reply.body) + job.streamed, ending)
        job.answer(reply, ending)
        return reply.status

    def _take_out(self, job: Job, now: float) -> None:
        """Remove a waiting job from the queue."""
        self._queue.remove(job)
        self._callers.taken(job)
        self._callers.ended(job, now)
        if not len(self._queue):
            self.collector.drained()

    def _refuse(self, job: Job, error: DaemonError) -> None:
        job.answer(error_reply(error), self._metrics.refused(error))
        self._observer.refused(job, error)

    def _pump(self) -> None:
        self._awake = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock.now()
        if self.expiry.watching:
            self._expire(now)
            self._match(now)
            self._alarm.set(self.expiry.next(now, self.running > 0), now)
        else:
            self._match(now)

    def _match(self, now: float) -> None:
        """Send the due batches to idle workers, and set the timer for the rest."""
        queue, workers = self._queue, self._workers
        queue.age(now)
        while len(queue) and workers.idle:
            head = queue.head
            # 1. A job whose worker died goes alone, and first; so does one that asks to run alone.
            if head.runs_alone:
                feared = self._fears(head)
                if feared and not workers.lone:
                    return  # until a worker has ended all of its rows
                worker = workers.take_idle(alone=feared)
                self._send(
                    worker, self._take(1),
                    "retry" if head.attempt else "solo" if head.exclusive else self.apart_reason, now,
                )  # fmt: skip
                continue
            # 2. The collector decides that a batch is due …
            decision = self.collector.decide(self._facts(), now)
            if isinstance(decision, Send):
                left = decision.count
                for share in range(decision.over, 0, -1):
                    size = -(-left // share)
                    jobs = self._taken(queue.take_batch(size, now))
                    self._send(workers.take_idle(), jobs, decision.reason, now)
                    left -= size
                continue
            # 3. … or when to ask again.
            queue.hold(now)
            if decision.until <= now:
                self.wake()
                return
            self._timer = self._clock.later(decision.until - now, self._pump)
            return
        # 4. No worker is idle: full batches are sent ahead, and halves.
        while len(queue) and workers.granting and (size := self._size_ahead(now)):
            jobs = self._taken(queue.take_batch(size, now))
            self._send(workers.take_granting(), jobs, "ahead", now)

    def _facts(self) -> Facts:
        queue = self._queue
        held, arrived = queue.since()
        return Facts(len(queue), self._workers.idle, held, queue.deadlines.next, arrived, self.stopping)

    def _size_ahead(self, now: float) -> int:
        """Return how many jobs are to be sent ahead to a busy worker now; 0 for none."""
        head, size = self._queue.head, self._traffic.enough(len(self._queue), 0)
        if head.runs_alone or len(self._queue) < size:
            return 0  # nearly always, and decided without further computation
        seconds = self._traffic.times.of(size)
        choice = self._queue.choice
        if choice is not None and not 0.0 < seconds < CHOSEN_AHEAD and len(self._queue) <= choice.look_ahead * size:
            return 0
        facts = self._facts()
        if self._queue.low:
            facts = msgspec.structs.replace(facts, waiting=facts.waiting - self._queue.low)
        return size if may_send_ahead(facts, self._workers.ready, size, seconds, now) else 0

    def _expire(self, now: float) -> None:
        """Answer the jobs that have no time left."""
        before = self.expired.total()
        for job, where, error, ending in self.expiry.due(now, self.running > 0):
            if where == "queue":
                self._take_out(job, now)
            else:
                self.expiry.sent.discard(job)
                self._leave_running(job)
                self._callers.ended(job, now)
                self._workers.cancel(job)
            self.expired[where] += 1
            self._metrics.expired(job, where, error.status, now, ending)
            self._traffic.expired(now)
            job.expire(error_reply(error), ending)
            self._observer.expired(job, error)
        if self.expired.total() > before:
            for listener in tuple(self._listeners):
                listener()

    def _take(self, count: int) -> list[Job]:
        return self._taken(self._queue.take(count))

    def _taken(self, jobs: list[Job]) -> list[Job]:
        """Note that jobs have left the queue, and return them."""
        for job in jobs:
            self._callers.taken(job)
        return jobs

    def _send(self, worker: Worker, jobs: Sequence[Job], reason: str, now: float) -> None:
        batch = Batch(
            next(self._batch_ids), jobs, reason, now, not worker.answered, jobs[0].queued, self._queue.waiting,
            self._traffic.batch_size,
        )  # fmt: skip
        held = batch.jobs[0].held
        if held is not None and held >= self._all_busy_at:  # a hold ends when the last idle worker gets work
            self.longest_hold = max(self.longest_hold, now - held)
        if not self._workers.idle:
            self._all_busy_at = now
        for job in batch.jobs:
            job.send()
            job.sent = now
            if job.budget is not None:
                self.expiry.sent.add_job(job)
        self.running += len(batch.jobs)
        self.reasons[reason] += 1
        self.sizes[len(batch.jobs)] += 1
        self._traffic.sent(batch, self._workers.busy, now)
        self._metrics.sent(batch)
        worker.predict(batch)

    # Decisions of subclasses, which know more of a job than its place in the queue.

    @property
    def withholds(self) -> bool:
        """Return whether jobs are refused or kept apart because of others before them, until an operator ends that."""
        return False

    @property
    def sends_batches(self) -> bool:
        """Return whether jobs are chosen for batches by their age or length alone."""
        return True

    @property
    def remembered(self) -> int:
        """Return how many states of clients the workers keep between requests."""
        return 0

    def forget(self, now: float) -> None:
        """Forget the states that have been kept for long enough."""

    def resized(self) -> None:
        """Note that the range of workers has changed."""

    @property
    def apart_reason(self) -> str:
        """Return the reason for which a job that is kept apart is sent."""
        return "solo"

    def _enqueue(self, job: Job, ahead: int) -> None:
        """Put a job into the queue, or raise; `ahead` as in `Queue.put`."""
        self._queue.put(job, ahead)

    def _fears(self, job: Job) -> bool:
        """Return whether a job that runs alone may end its worker, which then runs nothing else."""
        return job.apart is not None

    def _leave_running(self, job: Job) -> None:
        """Note that a job ends while its worker still runs it."""

    def _refusal_after(self, outcome: Outcome) -> str:  # noqa: ARG002
        """Return why a job may not run again after this outcome, in a sentence; empty if it may."""
        return ""


def reply_to_lost(outcome: Outcome, stopping: bool, refusal: str) -> tuple[Reply, Ending]:
    """Return the reply to a job whose worker has ended, and which may not run again; and how the job ends.

    Args:
        stopping: the model is being stopped.
        refusal: a sentence on why the same request is refused from now on; empty if it is not.
    """
    job = outcome.job
    if outcome.fate is Fate.STOPPED and stopping:
        return error_reply(CutOff(outcome.reason, job.id)), Ending.STOPPED
    again = " again" if job.attempt > 1 else ""
    kind = WorkerKilled if outcome.fate is Fate.KILLED else WorkerDied
    error = kind(f"The worker died{again} while it ran this request: {outcome.reason}. (Request {job.id})")
    if refusal:
        error = kind(f"{error} {refusal}")
    return error_reply(error), Ending.FAILED
