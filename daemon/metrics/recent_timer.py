"""One timer for all versions, which remembers their counts."""

from daemon.core.clock import Clock, Timer
from daemon.metrics.metrics import Metrics

EVERY = 5.0  # seconds


class RecentTimer:
    """Remembers the counts of all versions every five seconds."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._timer: Timer | None = None

    def begin(self) -> None:
        self._timer = self._clock.later(EVERY, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self.begin()
        now = self._clock.now()
        for version in self._metrics.versions:
            version.window.note(version.counts, now)
