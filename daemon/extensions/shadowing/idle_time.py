"""Idle time, in which a shadow runs copies, and its end: what a request needs is taken from a copy at once.

    computes ──a request comes──▶ suspended ──idle again, for a while──▶ computes
        └──the last copy ends, or a client asks the shadow itself──▶ not watched

Suspended means that the kernel runs none of the workers' threads (SIGSTOP): what remains to be paid for a copy is the
caches that it has used. On a node of a cluster a copy goes on.
"""

import math
from collections.abc import Callable, Iterable

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.job import Job, JobPhase
from tsctl.daemon.models.request_watcher import RequestFacts
from tsctl.daemon.models.version import ModelVersion

QUIET = 0.01  # seconds without a request: a client that asks again at once is not to wake what it suspends

# Returns all versions of the daemon, and those of the model that answer clients.
Others = Callable[[], tuple[Iterable[ModelVersion], Iterable[ModelVersion]]]


class IdleTime:
    """The idle time of one model's shadow, which runs its copies here."""

    def __init__(self, clock: Clock, others: Others) -> None:
        self._clock = clock
        self._others = others
        self._copies = 0
        self._shadow: ModelVersion | None = None  # while copies run that may be suspended
        self._watched: list[ModelVersion] = []
        self._since: float | None = None  # when the workers were suspended
        self._came = -math.inf  # when a request came last, while copies ran
        self._suspending, self._releasing = _Arrivals(self._suspend), _Arrivals(self.release)
        self._timer: Timer | None = None

    def wait(self, shadow: ModelVersion) -> float:
        """Return the seconds until the next look for idle time; 0.0 while there is some."""
        everything, answering = self._others()
        if not is_idle(everything, answering, shadow):
            return QUIET
        since = max(self._came, *(model.path.used_at for model in answering))
        return max(0.0, since + QUIET - self._clock.now())

    def run_copy(self, shadow: ModelVersion, copy: Job) -> None:
        """Let the shadow run a copy, which requests suspend; call `end_copy` when it is answered.

        Raises:
            DaemonError: the shadow refuses the copy.
        """
        try:
            shadow.submit(copy)
            self._copies += 1
        finally:
            if self._copies:
                self._watch(shadow)

    def _watch(self, shadow: ModelVersion) -> None:
        self._shadow = shadow
        self._watch_no_more()
        self._watched = list(self._others()[0])
        for model in self._watched:
            model.watchers += (self._releasing if model is shadow else self._suspending,)

    def _watch_no_more(self) -> None:
        for model in self._watched:
            model.watchers = tuple(each for each in model.watchers if each not in (self._suspending, self._releasing))
        self._watched.clear()

    def end_copy(self) -> None:
        """Note that a copy has ended."""
        self._copies -= 1
        if not self._copies:
            self.release()

    def _is_asked(self, shadow: ModelVersion) -> bool:
        """Return whether the shadow has a job that is no copy; some, such as those for metadata, nobody watches."""
        return shadow.queue.waiting + shadow.dispatcher.running > self._copies

    def _suspend(self) -> None:
        self._came = self._clock.now()
        shadow = self._shadow
        if self._since is None and shadow is not None and not self._is_asked(shadow):
            self._since = self._came
            shadow.pool.suspend()
            self._timer = self._clock.later(QUIET, self._look)

    def _look(self) -> None:
        assert self._shadow is not None
        left = self.wait(self._shadow)
        if self._is_asked(self._shadow):
            self.release()
        elif left:
            self._timer = self._clock.later(left, self._look)
        else:
            self._resume()

    def _resume(self) -> None:
        if self._since is not None and self._shadow is not None:
            self._shadow.pool.resume()
            self._since = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def release(self) -> None:
        """Let the copies go on, whatever comes."""
        self._resume()
        self._watch_no_more()
        self._shadow = None


class _Arrivals:
    """Calls a function before each request that a version's workers are to run: a `RequestWatcher`."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def watch(self, job: Job, asked: RequestFacts) -> bool:  # noqa: ARG002
        if job.phase is JobPhase.QUEUED:  # else a watcher, the cache, has answered it
            self._call()
        return False


def is_idle(everything: Iterable[ModelVersion], answering: Iterable[ModelVersion], shadow: ModelVersion) -> bool:
    """Return whether a copy may run.

    Nothing waits in the daemon, nothing runs of the versions that answer, and what runs of others leaves the shadow
    the cores that it uses.
    """
    others = [model for model in everything if model is not shadow]
    if any(model.waiting for model in others) or not all(model.idle for model in answering):
        return False
    used = sum(model.pool.busy * model.pool.threads for model in others)
    return shadow.pool.cores - used >= min(shadow.pool.threads, shadow.pool.cores)
