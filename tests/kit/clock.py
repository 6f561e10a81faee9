"""A clock for tests and simulations, which moves only when told to."""

import heapq
import itertools
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from tsctl.daemon.core.clock import Timer

T = TypeVar("T")


class FakeTimer:
    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class FakeClock:
    """A clock that moves only when told to.

    Attributes:
        held: work of another thread waits here until `release` is called, if this is not None.
    """

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start
        self._soon: deque[Callable[[], None]] = deque()
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._count = itertools.count()
        self.held: list[Callable[[], None]] | None = None

    def now(self) -> float:
        return self._now

    def aside(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        def call() -> None:
            then(work())

        if self.held is None:
            self._soon.append(call)
        else:
            self.held.append(call)

    def release(self) -> None:
        """Run the held work of another thread, and hold nothing more."""
        waiting, self.held = self.held or [], None
        self._soon.extend(waiting)

    def soon(self, call: Callable[[], None]) -> None:
        self._soon.append(call)

    def later(self, delay: float, call: Callable[[], None]) -> Timer:
        timer = FakeTimer(call)
        heapq.heappush(self._timers, (self._now + delay, next(self._count), timer))
        return timer

    def step(self) -> bool:
        """Make the next call, moving the time to its due time; return whether there was one."""
        if self._soon:
            self._soon.popleft()()
            return True
        while self._timers:
            due, _, timer = heapq.heappop(self._timers)
            if timer.call is not None:
                self._now = max(self._now, due)
                timer.call()
                return True
        return False

    def settle(self) -> None:
        """Make the calls that are due, without moving the time."""
        self.advance(0.0)

    def advance(self, seconds: float) -> None:
        """Move the time forward, making each call at its due time."""
        end = self._now + seconds
        while True:
            while self._soon:
                self._soon.popleft()()
            if not self._timers or self._timers[0][0] > end:
                break
            due, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            if timer.call is not None:
                timer.call()
        self._now = end
