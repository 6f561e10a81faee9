"""The latest batches of one version that have ended: for people who watch how batches form."""

from collections import deque
from typing import NamedTuple

from tsctl.daemon.core.job import Batch

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
