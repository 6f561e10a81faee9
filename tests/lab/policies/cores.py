"""Workers that share cores: while more workers are busy than there are cores, all of them slow down.

Each batch is an amount of work, in seconds of a worker with a core of its own; with k busy workers on n cores the work
proceeds at min(1, n/k) seconds a second. A batch is therefore slowed by the batches beside it, while they run
(processor sharing).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.kit.stub import StubEngine
from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.job import Job

Finished = Callable[[float], None]


class Cores:
    """The cores, and the batches running on them.

    Args:
        count: the number of cores; with 1 all workers share it, with one per worker nothing is shared.
    """

    def __init__(self, clock: Clock, count: float) -> None:
        self._clock = clock
        self._count = count
        self._running: list[Run] = []
        self._at = 0.0
        self._timer: Timer | None = None

    def run(self, seconds: float, finished: Finished) -> "Run":
        """Start a batch of `seconds` of work; `finished` is called with the seconds it took."""
        self._advance()
        run = Run(self, seconds, finished, self._clock.now())
        self._running.append(run)
        self._plan()
        return run

    def stop(self, run: "Run") -> None:
        """Remove a batch whose worker has gone; a finished batch is ignored."""
        if run in self._running:
            self._advance()
            self._running.remove(run)
            self._plan()

    def _advance(self) -> None:
        now = self._clock.now()
        done = (now - self._at) * min(1.0, self._count / max(1, len(self._running)))
        for run in self._running:
            run.left -= done
        self._at = now

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running:
            least = max(0.0, min(run.left for run in self._running))
            self._timer = self._clock.later(least / min(1.0, self._count / len(self._running)), self._end)

    def _end(self) -> None:
        self._advance()
        run = min(self._running, key=_left)
        self._running.remove(run)
        self._plan()
        run.finished(self._clock.now() - run.began)


@dataclass(slots=True, eq=False)
class Run:
    """One running batch; serves as a timer to its caller."""

    cores: Cores
    left: float
    finished: Finished
    began: float

    def cancel(self) -> None:
        self.cores.stop(self)


def _left(run: Run) -> float:
    return run.left


@dataclass
class SharingEngine(StubEngine):
    """An engine whose workers share cores."""

    cores: Cores = field(kw_only=True)

    def begin_batch(self, jobs: Sequence[Job], finished: Finished) -> Timer:
        return self.cores.run(self.seconds(jobs), finished)
