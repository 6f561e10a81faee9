"""The dispatcher of a version with sequences: a request goes to the worker that keeps its sequence's state.

No batch waits for others: what has come while the worker was busy runs together, one request of each sequence.
A request is never run twice, because it may have changed the state, and no request is sent ahead. Requests are not
compared with those that ended workers: each belongs to its worker, and cannot run alone elsewhere.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from tsctl.daemon.batching.dispatcher import Dispatcher
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Batch, Fate, Job, Outcome, Reply
from tsctl.daemon.extensions.sequences.marks import (
    SequenceHeaders,
    SequenceMark,
    ended_by,
    read_mark,
    with_mark,
    with_new_id,
)
from tsctl.daemon.extensions.sequences.table import Sequences
from tsctl.daemon.workers.engine import Worker

_OVER = (Fate.ANSWERED, Fate.CANCELLED)  # the worker goes on, and has done with the request


class SequenceDispatcher(Dispatcher):
    """As `Dispatcher`, for requests that belong to sequences; `keep` must be called before the first one.

    Attributes:
        sequences: the open ones.
        by_rows: the workers run row by row.
        names: the headers of sequences.
    """

    # As in TorchServe: a request that cancels another one must not wait for it.
    share: ClassVar[int] = 2

    def keep(
        self, sequences: Sequences[Worker], names: SequenceHeaders, limit: Callable[[], None], *, by_rows: bool
    ) -> None:
        """Use this table, and these names of headers; `limit` sets the limits of the table."""
        self.sequences = sequences
        self._limit = limit
        self.names = names
        self.by_rows = by_rows

    @property
    def sends_batches(self) -> bool:
        return False

    @property
    def remembered(self) -> int:
        return len(self.sequences)

    def forget(self, now: float) -> None:
        self.sequences.forget(now)

    def resized(self) -> None:
        self._limit()

    def submit(self, job: Job) -> None:
        """Queue a job, at the end of its sequence.

        Raises:
            QueueFull: a limit of the queue would be exceeded.
            BadRequest: the id of the job's sequence is too long.
            SequenceBroken: the state of the job's sequence is lost.
            SequenceOfAnother: the job's sequence is another client's.
            TooManySequences: a limit of sequences would be exceeded.
        """
        if job.exclusive:  # asks for the handler's description
            super().submit(job)
            return
        now = self._clock.now()
        mark = read_mark(job.headers, self.names)
        self.sequences.check(mark.id, mark.start, now, job.client)
        super().submit(job)
        job.mark = mark
        job.headers = with_mark(job.headers, mark, self.names)
        self.sequences.add_request(job, mark.id, now, job.client)

    def ended(self, worker: Worker, batch: Batch, outcomes: Sequence[Outcome], seconds: float) -> None:
        now = self._clock.now()
        once = []
        for outcome in outcomes:
            job, reply, mark = outcome.job, outcome.reply, outcome.job.mark
            if isinstance(mark, SequenceMark):
                self.sequences.done(job, now, end=mark.end and outcome.fate in _OVER)
                if reply is not None:
                    self.sequences.end(ended_by(reply.headers, self.names))
                    reply = _with_new_id(reply, mark, self.names)
            once.append(Outcome(job, reply, outcome.fate, False, outcome.reason))
        super().ended(worker, batch, once, seconds)

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        if isinstance(job.mark, SequenceMark):
            piece = _with_new_id(piece, job.mark, self.names)
        super().streamed(worker, job, piece)

    def worker_gone(self, worker: Worker, why: str) -> None:
        now = self._clock.now()
        for job, error in self.sequences.gone(worker, f"its worker has ended ({why})", now):
            self._take_out(job, now)
            self._refuse(job, error)

    def refuse_all(self, error: DaemonError) -> None:
        for job in self.sequences.clear():
            self._take_out(job, self._clock.now())
            self._refuse(job, error)
        super().refuse_all(error)

    def _take_out(self, job: Job, now: float) -> None:
        self.sequences.drop(job)
        super()._take_out(job, now)

    def _match(self, now: float) -> None:
        queue, workers = self._queue, self._workers
        while len(queue) and queue.head.exclusive and workers.idle:
            self._send(workers.take_idle(), self._take(1), "solo", now)
        if not len(queue):
            return
        free = list(workers.free)
        if self.by_rows:
            rooms = {worker: worker.in_flight.capacity - len(worker.in_flight) for worker in free}
        else:
            rooms = dict.fromkeys(free, self._traffic.batch_size)
        for worker, jobs in self.sequences.plan(rooms).items():
            for job in jobs:
                queue.remove(job)
                self._callers.taken(job)
            for batch in [[job] for job in jobs] if self.by_rows else [jobs]:
                workers.take(worker)
                self._send(worker, batch, "sequence", now)


def _with_new_id(reply: Reply, mark: SequenceMark, names: SequenceHeaders) -> Reply:
    if not mark.made:
        return reply
    return reply.with_headers(with_new_id(reply.headers, mark, names))
