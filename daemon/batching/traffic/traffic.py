"""Statistics of one version's traffic: batch times, gaps between arrivals, and returning clients.

Replies are matched to later arrivals first in, first out, whatever their clients: under a closed loop this
yields the clients' turnaround, under independent arrivals a time far too long to wait for. A kept-alive connection that
closes takes its unmatched reply with it: else, as long as others come, each arrival is matched to an earlier reply than
its own. (Forgetting all unmatched replies at a dispatch was tried: it shortens the second and spoils the tail under
Poisson arrivals.)
"""

from collections import deque
from contextlib import suppress
from typing import Final, NamedTuple

from tsctl.daemon.batching.traffic.best_size import BestSize
from tsctl.daemon.batching.traffic.callers import Callers, Survival
from tsctl.daemon.batching.traffic.halves import Halves
from tsctl.daemon.batching.traffic.times import NEAR, BatchTimes, PaddedTimes, Together
from tsctl.daemon.core.job import Batch, Caller, Job, JobPhase

KEPT = 256


class EndedBatch(NamedTuple):
    """A batch that a worker has answered, or has not.

    Attributes:
        sequence: rises with each batch of a version.
        sent: seconds on the daemon's clock.
        size: its requests; `limit`: the most that it might have had.
        reason: why it was due; see `tsctl.daemon.batching.policies.collector`.
        waited: seconds from the arrival of its first request until it was sent, or until its worker began it if it was
            sent ahead. A request that runs again has waited since its worker ended.
        queued: requests that were left in the queue when it was sent.
        worker: process id.
        took: seconds in the worker; 0.0 if the worker did not answer.
        failed: requests that were answered with a status of 500 or more; all of them if the worker did not answer.
    """

    sequence: int
    sent: float
    size: int
    limit: int
    reason: str
    waited: float
    queued: int
    worker: int
    took: float
    failed: int


# Plain tuples in the ring, not `EndedBatch`: the call of its constructor costs 0.3 µs, a tuple 0.03.
_Row = tuple[int, float, int, int, str, float, int, int, float, int]


class BatchLog:
    """A ring of ended batches.

    Args:
        start: sequences are larger than this. If it is a time in microseconds, they rise from one log of a version
            to the next.

    Attributes:
        last: the sequence of the latest batch; `start` without any.
    """

    def __init__(self, start: int) -> None:
        self.last = start
        self._rows: deque[_Row] = deque(maxlen=KEPT)

    def __repr__(self) -> str:
        return f"<BatchLog {len(self._rows)} batches>"

    def note(self, batch: Batch, worker: int, took: float, failed: int, now: float) -> None:
        """Remember a batch; `worker` is a process id, `took` as in `EndedBatch`."""
        self.last += 1
        jobs, sent = batch.jobs, batch.sent
        began = now - took if batch.reason == "ahead" and took else sent
        self._rows.append((
            self.last, sent, len(jobs), batch.limit, batch.reason, began - batch.oldest, batch.queued, worker, took,
            failed,
        ))  # fmt: skip

    def after(self, sequence: int) -> list[EndedBatch]:
        """Return the batches behind a sequence, the oldest first; all of them if the sequence is of another log."""
        known = sequence <= self.last
        return [EndedBatch(*row) for row in self._rows if not known or row[0] > sequence]


REPLY_LIFE: Final = 2.0  # seconds until an unmatched reply is forgotten
TRACE_LENGTH = 20_000  # arrivals kept for the autoscaler's rate


class _Flight:
    """A batch in flight.

    Attributes:
        busy_seconds: the sum of all workers' busy time when the batch was sent.
        sent: when the batch was sent.
    """

    __slots__ = ("busy_seconds", "sent")

    def __init__(self, busy_seconds: float, sent: float) -> None:
        self.busy_seconds = busy_seconds
        self.sent = sent


class Traffic:
    """The interface between the dispatcher, which reports events, and the collectors. Times are on the daemon's clock.

    Attributes:
        gaps: between arrivals.
        turnarounds: from a reply to its matching arrival.
        last_arrival, gap: when the last job arrived, and how long after the one before; -inf, inf before.
        last_return, last_time: when the last batch came back, and its seconds in the worker.
        missing: the clients of that batch that have neither come back nor closed their connection.
        busy, running: workers that have a batch, and the jobs in these batches.
        padded: learns how long batches take by their longest job, while that matters; else None.
        halves: learns whether the clients are better served in two halves, where the policy asks for it; else None.
        best: learns which size of batches has the best rate, while the policy asks for it; else None.
        trace: when the latest jobs arrived.
    """

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self.times = BatchTimes()
        self.together = Together(self.times)
        self.padded: PaddedTimes | None = None
        self.halves: Halves | None = None
        self.best: BestSize | None = None
        self.gaps = Survival()
        self.turnarounds = Survival()
        self.callers = Callers(self)
        self.last_arrival = float("-inf")
        self.gap = float("inf")
        self.last_return = self._return_before = float("-inf")
        self.last_time = 0.0
        self.missing = 0
        self.busy = 0
        self.running = 0
        self._busy_seconds = 0.0  # of all workers, until …
        self._busy_at = 0.0
        self._flights: dict[int, _Flight] = {}  # by the batch's id
        self.trace: deque[float] = deque(maxlen=TRACE_LENGTH)
        self._replies: deque[float] = deque()

    @property
    def most(self) -> int:
        """How many jobs a batch has at most: more would not be answered sooner."""
        return self.batch_size if self.best is None else self.best.size

    def enough(self, waiting: int, idle: int) -> int:
        """Return how many jobs are a batch that waits for no further ones; arguments as of `BestSize.next`."""
        share = 0 if self.halves is None else self.halves.share
        size = self.batch_size if self.best is None else self.best.next(waiting, idle)
        return min(share or size, size)

    def rate_at(self, now: float) -> float:
        """Return the arrivals a second, including the silence since the last one; 0.0 before there are two."""
        gaps = self.gaps
        if not gaps.rate:
            return 0.0
        return gaps.effective / (gaps.effective / gaps.rate + max(0.0, now - self.last_arrival))

    def regulars_at(self, now: float) -> int:
        """Return how many connections send regularly."""
        self.callers.forget_silent(now, self.turnarounds)
        return self.callers.regulars

    def learn_lengths(self, wanted: bool) -> None:
        """Learn how long batches take by their longest job, or forget that."""
        if not wanted:
            self.padded = None
        elif self.padded is None:
            self.padded = PaddedTimes(self.times)
        if self.best is not None:
            self.best.rest(resting=wanted)  # batches are cut by what their lengths cost

    def arrived(self, job: Job) -> None:
        now, trace, callers = job.queued, self.trace, self.callers
        if trace:
            self.gap = now - self.last_arrival
            self.gaps.add_time(self.gap)
        self.last_arrival = now
        trace.append(now)
        replies = self._replies
        while replies:
            replied = replies.popleft()
            if replied >= now - REPLY_LIFE:
                self.turnarounds.add_time(now - replied)
                break
        if self.missing:
            self.missing -= 1
        callers.arrived(job)

    def sent(self, batch: Batch, busy: int, now: float) -> None:
        """Note that a batch was sent to a worker; `busy` workers have one now."""
        self._pass(busy, now)
        self.running += len(batch.jobs)
        if self.best is not None:
            self.best.sent(len(batch.jobs))
        self._flights[batch.id] = _Flight(self._busy_seconds, now)

    def back(self, batch: Batch, busy: int, now: float) -> float:
        """Note that a batch came back, answered or not; return the mean number of busy workers while it was away."""
        self._pass(busy, now)
        self.running -= len(batch.jobs)
        return self._beside(self._flights.pop(batch.id), now)

    def _pass(self, busy: int, now: float) -> None:
        self._busy_seconds += self.busy * (now - self._busy_at)
        self._busy_at = now
        self.busy = busy

    def _beside(self, flight: "_Flight", now: float) -> float:
        """Return the mean number of busy workers since the batch was sent."""
        away = now - flight.sent
        passed = self._busy_seconds + self.busy * (now - self._busy_at) - flight.busy_seconds
        return passed / away if away > 0.0 else float(self.busy)

    def returned(self, batch: Batch, seconds: float, now: float) -> None:
        """Note that a batch is answered now, after `seconds` in the worker; 0.0 if it timed out."""
        self._return_before, self.last_return = self.last_return, now
        self.last_time = seconds or self.last_time
        # Others have expired, so that they were answered before, or their clients have gone.
        self.missing = sum(job.phase is JobPhase.SENT and not job.caller_stats.gone for job in batch.jobs)
        self._replied(self.missing, now)

    def learn_batch(self, batch: Batch, seconds: float, now: float, busy: float = 1.0, workers: int = 1) -> None:
        """Learn from the batch that has just returned what batches take, once its clients have their answers.

        Args:
            seconds, now: as of `returned`.
            busy: as returned by `back`.
            workers: those that are ready.
        """
        if seconds and not batch.first and batch.reason != "retry":
            typical = seconds
            if self.padded is not None:
                typical = self.padded.learn_batch(len(batch.jobs), max([job.size for job in batch.jobs]), seconds)
            self.times.learn_batch(len(batch.jobs), typical)
            self.together.learn_batch(busy, len(batch.jobs), typical)
            if self.halves is not None:
                per_batch = self.times.per_batch if self.times.spread else 0.0
                self.halves.returned(len(batch.jobs), seconds, now, self.callers.regulars, self.most, per_batch)
            if self.best is not None and busy >= workers - NEAR:
                # With one worker all that passes from batch to batch counts. On a busy machine a process waits for a
                # core longest before it begins: by the worker's own seconds, batches of one would look cheap.
                passed = now - max(batch.sent, self._return_before) if workers == 1 else seconds
                self.best.returned(len(batch.jobs), max(seconds, passed))

    def expired(self, now: float) -> None:
        """Note that a job expired: its client was answered, and may come back, too."""
        self._replied(1, now)

    def _replied(self, count: int, now: float) -> None:
        replies = self._replies
        replies.extend([now] * count)
        while len(replies) > 2 * self.batch_size:
            replies.popleft()

    def left(self, caller: Caller) -> None:
        """Note that a connection closed, or now sends its jobs to another version."""
        caller_stats = self.callers.left(caller)
        # A client that opens a connection for each request conveys nothing by closing it.
        kept = caller_stats.requests > 1
        if kept and not caller_stats.outstanding:
            if self.missing and caller_stats.replied == self.last_return:
                self.missing -= 1
            with suppress(ValueError):  # matched already, or forgotten
                self._replies.remove(caller_stats.replied)
