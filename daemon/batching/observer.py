"""The events of a dispatcher that concern operators; none of them is on the way of a request that is answered well.

And those that a tracer of requests needs, where requests are traced.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Batch, Job, Outcome, Reply
from tsctl.daemon.metrics.version import VersionMetrics
from tsctl.daemon.workers.engine import Worker
from tsctl.handlers.wire import Measurement

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

    def quarantined(self, job: Job, sentence: str) -> None:
        """Note that requests like this job are rejected for a while, and why."""


class VersionTracer(Protocol):
    """Records the traces of one version's requests (daemon/tracing/).

    Attributes:
        ratio: how many of the requests without a caller's trace are recorded, 0.0 to 1.0.
    """

    ratio: float

    def begin(self, job: Job, method: str, target: str, began: float, draw: float) -> None:
        """Set the job's trace, if it is to be recorded, and what its handler is told of that.

        Not called for a job without a caller's trace whose draw is not below the ratio.

        Args:
            draw: a random number from 0.0 up to, but not including, 1.0.
            began: when the headers of the request were complete, on the daemon's clock.
        """

    def beside(self, take: Callable[[Sequence[Measurement]], None]) -> Callable[[Sequence[Measurement]], None]:
        """Return a function that takes a worker's measurements, which it reports before its batch is `returned`.

        Args:
            take: called with them as well.
        """

    def returned(self, worker: int, batch: Batch, outcomes: Sequence[Outcome], seconds: float, now: float) -> None:
        """Note that a batch with a recorded job came back from a worker, after its jobs ended or were queued again.

        Args:
            worker: its process id.
            seconds: the time that the batch took there; 0.0 if it was not answered.
        """


class Tracing(Protocol):
    """Makes the tracer of each version."""

    def of(self, metrics: VersionMetrics) -> VersionTracer:
        """Return the tracer of the version with these metrics, which show some of its requests as examples."""
