"""An alarm: one timer for the earliest of many times."""

import math
from collections.abc import Callable

from tsctl.daemon.core.clock import Clock, Timer


class Alarm:
    """Calls at the earliest time that was set since the last call; a call that is no longer due does no harm."""

    def __init__(self, clock: Clock, call: Callable[[], None]) -> None:
        self._clock = clock
        self._call = call
        self._timer: Timer | None = None
        self._due = math.inf

    @property
    def armed(self) -> bool:
        """Whether a call is due at some time."""
        return self._timer is not None

    def set(self, due: float, now: float) -> None:
        """Call at `due`, unless a call is due earlier; inf for never."""
        if due < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = self._clock.later(max(0.0, due - now), self._ring)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due = None, math.inf

    def _ring(self) -> None:
        self._timer, self._due = None, math.inf
        self._call()
