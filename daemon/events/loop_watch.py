"""A watch on the event loop: a timer that is called late means that nothing else was answered meanwhile, either."""

from collections.abc import Callable

from tsctl.daemon.core.clock import Clock, Timer

EVERY = 0.5  # seconds: two calls a second cost nothing that can be measured
LATE = 0.5  # seconds, from which on it is reported


class LoopWatch:
    """Reports stalls of the loop that a clock runs on.

    Args:
        stalled: called after each, with its length in seconds.
    """

    def __init__(self, clock: Clock, stalled: Callable[[float], None]) -> None:
        self._clock = clock
        self._stalled = stalled
        self._due = 0.0
        self._timer: Timer | None = None

    def begin(self) -> None:
        self._due = self._clock.now() + EVERY
        self._timer = self._clock.later(EVERY, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        late = self._clock.now() - self._due
        self.begin()
        if late >= LATE:
            self._stalled(late)
