"""One timer for all versions, which remembers their counts."""

from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.metrics.metrics import Metrics

EVERY = 5.0  # seconds


class RecentTimer:
    """Remembers the counts of all versions every five seconds."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._ticker = Ticker(clock, EVERY, self._look)
        self.begin, self.close = self._ticker.begin, self._ticker.close

    def _look(self) -> None:
        now = self._clock.now()
        for version in self._metrics.versions:
            version.window.note(version.counts, now)
