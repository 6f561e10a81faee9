"""The events of one version: what its pool and its dispatcher notice, as an operator reads it.

An exit of a worker is told when it is over, together with the fate of the requests that the worker had: its batches
end before (workers/engine.py).
"""

import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from tsctl.daemon.batching.observer import RETURNED, UNHEARD, BatchObserver
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Fate, Job, Outcome, Reply
from tsctl.daemon.events.events import Event
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.workers.engine import Exit, Worker
from tsctl.daemon.workers.pool import Pool

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


LATEST = 10  # events of a version in its describe document
MOST_IDS = 20  # request ids in a sentence


class VersionReports(BatchObserver):
    """Adds the events of one version.

    Args:
        recurring: for what may happen with each request.

    Attributes:
        errors: the latest predictions that failed.
        ended: when a worker last ended that was not told to, on the daemon's clock; None if none did.
    """

    def __init__(self, recurring: Recurring, name: str, version: str) -> None:
        self.errors = PredictionErrors()
        self.ended: float | None = None
        self._recurring = recurring
        self._name = name
        self._version = version
        self._lost: dict[Worker, list[tuple[str, str]]] = {}  # of workers that are ending: request id, and its fate
        self._ready = self._failed = self._crashing = False
        self._given_up = 0

    def __repr__(self) -> str:
        return f"<VersionReports of {self._name}/{self._version}>"

    def add(self, kind: str, text: str, *, worker: int = 0, requests: Sequence[str] = ()) -> None:
        """Add an event of this version, as `Events.add`."""
        self._recurring.events.add(
            kind, text, model=self._name, version=self._version, worker=worker, requests=requests
        )

    def latest(self) -> list[Event]:
        """Return the last events of the version, the oldest first."""
        return self._recurring.events.after(0, self._name, self._version)[-LATEST:]

    def pool_changed(self, pool: Pool, *, crashing: bool, beside: bool) -> None:
        """Add what a change of the pool means for the version.

        Args:
            crashing: several workers in a row have ended while they ran requests.
            beside: the version is loading to replace another one, whose events tell how that ends.
        """
        ready, hopeless = pool.ready, bool(pool.slots) and pool.hopeless
        if crashing and not self._crashing:
            last = pool.last_exit.reason if pool.last_exit is not None else "unknown"
            self.add(
                "model-crashing",
                f"crashing: {pool.crashes} workers ended one after the other while they ran requests, the last: {last}",
            )
        elif self._crashing and not crashing:
            self.add("model-recovered", "no longer crashing")
        self._crashing = crashing
        if ready and not self._ready:
            self._ready = True
            if not beside:
                self.add("model-ready", f"ready: {ready} of {pool.wanted} workers")
        elif ready and self._failed:
            self.add("model-recovered", f"ready again: {ready} of {pool.wanted} workers")
        error = "unknown" if pool.failure is None else pool.failure.error
        if hopeless and not self._failed and not beside:
            self.add("model-failed", f"failed, and no worker is started again: {error}")
        elif ready and pool.given_up > self._given_up:
            self.add("workers-given-up", f"{pool.given_up} of {pool.wanted} workers are not started again: {error}")
        self._failed = hopeless
        if ready or not pool.given_up:
            self._given_up = pool.given_up

    def worker_exited(self, worker: Worker, how: Exit, expected: bool, now: float) -> None:
        """Add the end of a worker, unless it was told to end, and has left no request; `now` on the daemon's clock."""
        fates = self._lost.pop(worker, [])
        if not expected:
            self.ended = now
        if expected and not fates:
            return
        kinds = list(dict.fromkeys(fate for _, fate in fates))
        sentence = f"worker {worker.pid} ended: {how.reason}"
        if kinds:
            parts = [
                _group([id_ for id_, fate in fates if fate == kind], kind, alone=len(kinds) == 1) for kind in kinds
            ]
            sentence += f"; its requests: {', '.join(parts)}"
        elif not expected:
            sentence += "; it had no requests"
        self.add("worker-exited", sentence, worker=worker.pid, requests=[id_ for id_, _ in fates])

    def close(self) -> None:
        """Add what waits for the end of its minute: the version is no longer registered."""
        self._recurring.close(self._name, self._version)

    def note(self, kind: str, text: str) -> None:
        """Add an event of this version that may recur, at most once a minute."""
        self._recurring.note(kind, text, model=self._name, version=self._version)

    def refused(self, job: Job, error: DaemonError) -> None:
        self._note("requests-refused", f"a request was refused: {error}", type(error).__name__, job)

    # BatchObserver.

    def failed(self, job: Job, reply: Reply) -> None:
        self.errors.failed(job, reply, time.time())
        message = bytes(reply.body[:1000]).decode("utf-8", "replace") if reply.error else ""
        text = f"a request failed with status {reply.status}"
        self._note("requests-failed", f"{text}: {message}" if message else text, "", job)

    def lost(self, worker: Worker, outcomes: Sequence[Outcome], ends: Sequence[int]) -> None:
        self.errors.lost(outcomes, ends, time.time())
        fates = self._lost.setdefault(worker, [])
        fates += [(outcome.job.id, _fate(outcome, end)) for outcome, end in zip(outcomes, ends, strict=True)]

    def expired(self, job: Job, error: DaemonError) -> None:
        self._note("requests-expired", f"a request had no time left: {error}", type(error).__name__, job)

    def _note(self, kind: str, text: str, reason: str, job: Job) -> None:
        line = text.partition("\n")[0]
        self._recurring.note(kind, line, model=self._name, version=self._version, reason=reason, request=job.id)


def _fate(outcome: Outcome, end: int) -> str:
    """Return in words what became of a request whose worker did not answer."""
    if end == RETURNED:
        return "not begun and waiting again" if outcome.fate is Fate.UNSTARTED else "retried"
    return "without a client" if end == UNHEARD else f"answered with {end}"


def _group(ids: Sequence[str], fate: str, *, alone: bool) -> str:
    """Return how many requests had this fate; and which, unless all had the same."""
    said = f"{len(ids)} {fate}"
    if alone:
        return said
    more = f" and {len(ids) - MOST_IDS} more" if len(ids) > MOST_IDS else ""
    return f"{said} ({' '.join(ids[:MOST_IDS])}{more})"
