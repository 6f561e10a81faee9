"""The events of a dispatcher that concern operators; none of them is on the way of a request that is answered well."""

from collections.abc import Sequence

from daemon.core.errors import DaemonError
from daemon.core.job import Job, Outcome, Reply
from daemon.workers.engine import Worker

RETURNED = 0  # the job is in the queue again
UNHEARD = -1  # nobody waits for the job's answer: its client has left, or it had expired


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

    def quarantined(self, job: Job, sentence: str) -> None:
        """Note that requests like this job are rejected for a while, and why."""
