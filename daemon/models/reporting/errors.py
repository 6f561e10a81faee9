"""The latest predictions of one version that failed, with the tracebacks of their handler."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from tsctl.daemon.core.job import Job, Outcome, Reply

KEPT = 5
LONGEST_MESSAGE = 1_000  # characters
LONGEST_TRACEBACK = 8_000


class PredictionError(NamedTuple):
    """A failure of one or several requests of a batch.

    Attributes:
        time: seconds since the epoch.
        status: of the answer.
        traceback: without the daemon's frames; empty if no exception was raised.
        request: the id of the first of them.
        requests: how many of a batch failed alike.
    """

    time: float
    status: int
    message: str
    traceback: str
    request: str
    requests: int


class PredictionErrors:
    """A ring of failures. The requests of a batch that failed by the same exception are one."""

    def __init__(self) -> None:
        self._kept: deque[PredictionError] = deque(maxlen=KEPT)
        self._of_last = ""  # the traceback as it came: that of one exception is one object

    def __repr__(self) -> str:
        return f"<PredictionErrors {len(self._kept)} kept>"

    def failed(self, job: Job, reply: Reply, now: float) -> None:
        """Note that a worker answered with a status of 500 or more; the replies of a batch come one after the other."""
        last = self._kept[-1] if self._kept else None
        if last is not None and reply.traceback and reply.traceback is self._of_last:
            # A batch's replies come in reverse, and its first request shall be named.
            self._kept[-1] = last._replace(request=job.id, requests=last.requests + 1)
            return
        self._of_last = reply.traceback
        self._kept.append(_error(now, reply.status, reply.body, reply.traceback, job.id, 1))

    def lost(self, outcomes: Sequence[Outcome], ends: Sequence[int], now: float) -> None:
        """Note a batch that a worker did not answer; `ends` as for `BatchObserver.lost`."""
        failed = [(outcome, end) for outcome, end in zip(outcomes, ends, strict=True) if end >= 500]
        if failed:
            outcome, status = failed[0]
            message = f"the worker ended: {outcome.reason}".encode() if outcome.reply is None else outcome.reply.body
            self._kept.append(_error(now, status, message, "", outcome.job.id, len(failed)))

    def latest(self) -> list[PredictionError]:
        """Return the last failures, the oldest first."""
        return list(self._kept)


def _error(now: float, status: int, message: bytes, traceback: str, request: str, requests: int) -> PredictionError:
    text = bytes(message[: 4 * LONGEST_MESSAGE]).decode("utf-8", "replace")[:LONGEST_MESSAGE]
    if len(traceback) > LONGEST_TRACEBACK:  # where the exception was raised, and its text, are at the end
        half = LONGEST_TRACEBACK // 2
        traceback = f"{traceback[:half]}\n… ({len(traceback) - 2 * half} characters more) …\n{traceback[-half:]}"
    return PredictionError(now, status, text, traceback, request, requests)
