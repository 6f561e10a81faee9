"""The rows in flight at one worker that runs row by row: batches of one job, which end in any order (state.py)."""

from collections.abc import Collection, Iterator, Sequence

from tsctl.daemon.core.arena import Lease
from tsctl.daemon.core.job import Batch, Fate, Job, Outcome, Reply
from tsctl.daemon.core.states import follow
from tsctl.daemon.workers.inflight import InFlight
from tsctl.daemon.workers.rows.state import TRANSITIONS, RowEvent, RowState


class RowsInFlight(InFlight):
    """The rows of one worker. All have started: the worker begins a row when it receives it.

    Attributes:
        capacity: the most rows in flight.
    """

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._states: dict[int, RowState] = {}
        self._numbers: dict[Job, int] = {}

    @property
    def running(self) -> Batch | None:
        """None: there is no row for which the others wait."""
        return None

    @property
    def busy(self) -> bool:
        return bool(self._batches)

    @property
    def unstarted(self) -> int:
        return 0

    def has_started(self, batch: Batch) -> bool:  # noqa: ARG002 - as the base class asks
        return True

    def add_batch(self, batch: Batch, leases: Sequence[Lease] = ()) -> None:
        super().add_batch(batch, leases)
        [job] = batch.jobs
        self._states[batch.id] = RowState.RUNNING
        self._numbers[job] = batch.id

    def find(self, number: int) -> Batch | None:
        """Return the row with this id whose answer is awaited; None for one that was cancelled, or has ended."""
        return self._batches[number] if self._states.get(number) is RowState.RUNNING else None

    def number_of(self, job: Job) -> int | None:
        """Return the id of this job's row if its answer is awaited, else None."""
        number = self._numbers.get(job)
        return number if number is not None and self._states[number] is RowState.RUNNING else None

    def cancel(self, number: int, event: RowEvent = RowEvent.CANCEL) -> None:
        """Note that nobody waits for a row's answer any more."""
        self._states[number] = follow(TRANSITIONS, self._states[number], event)

    @property
    def numbers(self) -> Collection[int]:
        """The ids of the rows, cancelled or not."""
        return self._batches.keys()

    def finish_row(self, number: int, kept: Sequence[int] = ()) -> Batch:
        """Remove and return a row that the worker has finished.

        Args:
            kept: as in `finish`.
        """
        batch = self._batches.pop(number)
        follow(TRANSITIONS, self._states.pop(number), RowEvent.DONE)
        del self._numbers[batch.jobs[0]]
        self._end_leases(number, kept)
        return batch

    def give_back(self, retry: bool, reason: str, fate: Fate) -> Iterator[tuple[Batch, list[Outcome]]]:
        self._states.clear()
        self._numbers.clear()
        return super().give_back(retry, reason, fate)

    def expire_all(self, retry: bool, reply: Reply) -> list[tuple[Batch, list[Outcome]]]:
        """Remove all rows of a worker that hangs; the last sent first, as each goes to the head of the queue.

        Args:
            retry: whether they may be run again. A row that ran alone may not: that row alone is so slow.
            reply: the answer to rows that are not run again.
        """
        again = retry and len(self._batches) > 1
        ended = [(batch, [Outcome(batch.jobs[0], reply, Fate.LATE, again)]) for batch in self]
        self._batches.clear()
        self._states.clear()
        self._numbers.clear()
        return ended[::-1]
