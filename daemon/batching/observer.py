"""The events of a dispatcher that concern operators; none of them is on the way of a request that is answered well.

And the return of a batch, for whoever watches batches.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Batch, Job, Outcome, Reply
from tsctl.daemon.workers.engine import Worker

RETURNED: Final = 0  # the job is in the queue again
UNHEARD: Final = -1  # nobody waits for the job's answer: its client has left, or it had expired


class BatchObserver:
    """The receiver of these events; it ignores them."""

    def failed(self, job: Job, reply: Reply) -> None:
        """Note that a worker answered a job with a status of 500 or more."""

    def lost(self, worker: Worker, outcomes: Sequence[Outcome], ends: Sequence[int]) -> None:
        """Note that a worker did not answer a batch.

        Args:
            ends: for each outcome the status of the answer in place of the worker's, or `RETURNED`, or `UNHEARD`.
        """

    def expired(self, job: Job, error: DaemonError) -> None:
        """Note that a job had no time left."""

    def refused(self, job: Job, error: DaemonError) -> None:
        """Note that a waiting job was answered with an error."""


class BatchWatcher(Protocol):
    """Sees each batch that comes back from a worker."""

    def returned(self, worker: int, batch: Batch, outcomes: Sequence[Outcome], seconds: float, now: float) -> None:
        """Note that a batch came back, after its jobs ended or were queued again.

        Args:
            worker: its process id.
            seconds: the time that the batch took there; 0.0 if it was not answered.
        """
