"""A real loop on which a stub's work takes no time."""

from collections.abc import Callable

from tests.kit.clock import FakeTimer
from tsctl.daemon.core.clock import LoopClock


class AtOnce(LoopClock):
    """A clock whose timers are due at once, in order: a stub's batches take no time."""

    def later(self, delay: float, call: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(call)
        self.soon(lambda: timer.call() if timer.call is not None else None)
        return timer
