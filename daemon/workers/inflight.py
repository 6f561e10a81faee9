"""The batches in flight at one worker: the running one, and those sent ahead, in the order they are run.

A worker takes the next batch when the one before is answered, without waiting for the daemon:
waking an idle process costs about 45 µs each way. So only the first can have started; if the worker goes away,
no handler has seen the others. A worker that runs several at the same time reports
which it has started (handlers/process/pipeline.py).

    take ──▶ AHEAD ──start, or the one before has ended──▶ RUNNING ──finish: its Done──▶ ENDED: answered
               │                                             │  └───expire──▶ OVERDUE ──settle: its Done─▶ ENDED
               │                                             │                   │
               └── give_back: UNSTARTED ──▶ ENDED ◀─give_back┘   end ────────────┴──▶ ENDED, all with the process

The dispatcher takes a batch back at `finish`, `expire` or `give_back`, whichever comes first. A row that runs on its
own has states of its own (rows/state.py).

`InFlight` also keeps the worker's leases of shared memory (daemon/core/arena.py). A lease outlives the request's fate:
the worker may read the memory until the batch is reported as done, or the process has ended.

    a batch is taken ──▶ LEASED ──finish: its Done──────────────────────────────▶ ended
                           │  └───expire──▶ OVERDUE ──settle: its Done at last──▶ ended
                           │                   │
                           └─── process ended ─┴── end ─────────────────────────▶ ended

A handler may use the memory of an inference request's tensors after their batch. The worker names those values with
each batch that is done (`Done.kept`), and their leases last until it no longer does.
"""

from collections.abc import Iterator, Sequence

from tsctl.daemon.core.arena import Lease
from tsctl.daemon.core.job import Batch, Fate, Outcome, Reply

CAPACITY = 2  # batches: one runs, one is there when it ends


class InFlight:
    """The batches of one worker.

    Attributes:
        capacity: the most batches in flight.
        congested: the worker has yet to read most of a batch, and is sent no other meanwhile.
        overdue: the id of a batch that was answered in place of the worker, which still runs it; else None.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.congested = False
        self.overdue: int | None = None
        self._begun: set[int] = set()  # ids of batches reported as begun by a worker that runs several at the same time
        self._batches: dict[int, Batch] = {}  # by their ids, in the order in which they were sent
        self._leases: dict[int, Sequence[Lease]] = {}  # by the ids of batches that have any
        self._kept: dict[int, Lease] = {}  # by their offsets: of batches that are done

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches.values())

    def __repr__(self) -> str:
        return f"<InFlight {' '.join(map(repr, self)) or 'empty'}>"

    @property
    def running(self) -> Batch | None:
        """The batch that has started, and is not overdue."""
        return next(iter(self._batches.values())) if self._batches and self.overdue is None else None

    @property
    def busy(self) -> bool:
        """Whether the worker has a started batch: a running or an overdue one."""
        return bool(self._batches) or self.overdue is not None

    @property
    def unstarted(self) -> int:
        """The number of jobs that were sent ahead, and wait here."""
        if len(self._batches) < 2 and self.overdue is None:
            return 0
        return sum([len(batch.jobs) for batch in self if not self.has_started(batch)])

    def has_started(self, batch: Batch) -> bool:
        """Return whether a handler may have seen the batch."""
        return batch is self.running or batch.id in self._begun

    def find(self, number: int) -> Batch | None:
        """Return the batch with this id, if started and not overdue; else None."""
        batch = self._batches.get(number)
        return batch if batch is not None and self.has_started(batch) else None

    def start(self, number: int) -> None:
        """Note that the worker reports a batch as begun; an unknown id is ignored."""
        if number in self._batches:
            self._begun.add(number)

    def start_all(self) -> None:
        """Note that each batch may have begun: the worker was lost, and its last reports with it, perhaps."""
        self._begun.update(self._batches)

    @property
    def leased(self) -> int:
        """Bytes of shared memory that the worker may still read."""
        kept = sum([len(lease) for lease in self._kept.values()])
        return kept + sum([len(lease) for leases in self._leases.values() for lease in leases])

    def add_batch(self, batch: Batch, leases: Sequence[Lease] = ()) -> None:
        """Add a batch behind the others.

        Args:
            leases: of the batch's values that are in shared memory.
        """
        assert len(self._batches) < self.capacity, self
        self._batches[batch.id] = batch
        if leases:
            self._leases[batch.id] = leases

    def finish(self, kept: Sequence[int] = ()) -> Batch:
        """Remove and return the batch that ran; the worker has finished it, and the next one starts.

        Args:
            kept: the offsets of all values of finished batches whose memory the worker still uses.
        """
        batch = self._take_out()
        self._end_leases(batch.id, kept)
        return batch

    def settle(self, kept: Sequence[int] = ()) -> None:
        """Note that the worker has finished the overdue batch at last, and starts the next one.

        Args:
            kept: as in `finish`.
        """
        assert self.overdue is not None
        self._end_leases(self.overdue, kept)
        self.overdue = None

    def _end_leases(self, number: int, kept: Sequence[int]) -> None:
        """End the leases of a batch, and of earlier ones, whose values are not `kept`."""
        if not self._leases and not self._kept:
            return
        ended = self._leases.pop(number, ())
        if kept or self._kept:
            still = set(kept)
            self._kept = {lease.offset: lease for lease in (*self._kept.values(), *ended) if lease.offset in still}

    def end_all_leases(self) -> None:
        """End all leases; the worker's process has ended, and reads nothing any more."""
        self._leases.clear()
        self._kept.clear()

    def expire(self, retry: bool, reply: Reply) -> tuple[Batch, list[Outcome]]:
        """Remove the running batch although the worker has not finished: the next one waits, or was reported as begun.

        Args:
            retry: whether its jobs may be run again. A job that ran alone may not: that job alone is so slow.
            reply: the answer to the jobs that are not run again.
        """
        batch = self._take_out()
        self.overdue = batch.id
        again = retry and len(batch.jobs) > 1
        return batch, [Outcome(job, reply, Fate.LATE, again) for job in batch.jobs]

    def give_back(self, retry: bool, reason: str, fate: Fate) -> Iterator[tuple[Batch, list[Outcome]]]:
        """Remove all batches of a lost worker; the last first, as each goes to the head of the queue.

        Args:
            retry: whether started jobs may be run again.
            reason: as in `Outcome`.
            fate: of started jobs; of a worker that ended of itself, CRASHED.
        """
        started_batches = sum([self.has_started(batch) for batch in self])
        one_batch = started_batches + (self.overdue is not None) == 1
        while self._batches:
            started = self.has_started(self._batches[next(reversed(self._batches))])
            _, batch = self._batches.popitem()
            self._begun.discard(batch.id)
            if not started:
                yield batch, [Outcome(job, None, Fate.UNSTARTED, True, reason) for job in batch.jobs]
            elif fate is Fate.CRASHED and one_batch and len(batch.jobs) == 1:
                yield batch, [Outcome(batch.jobs[0], None, Fate.CRASHED_ALONE, retry, reason)]
            else:
                yield batch, [Outcome(job, None, fate, retry, reason) for job in batch.jobs]

    def _take_out(self) -> Batch:
        batch = self._batches.pop(next(iter(self._batches)))
        self._begun.discard(batch.id)
        return batch
