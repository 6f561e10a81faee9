"""Time for the daemon's decisions: the event loop's, or a test's.

Decisions take the time as an argument; their callers read it from a
`Clock`, once per wake-up. `FakeClock` ships, so that tests and simulations run
the same objects without sleeping.
"""

import asyncio
import heapq
import itertools
import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")


class Timer(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Monotonic seconds, and calls made at a later time."""

    def now(self) -> float: ...

    def soon(self, call: Callable[[], None]) -> None:
        """Make a call after the input that has already arrived has been read."""

    def later(self, delay: float, call: Callable[[], None]) -> Timer:
        """Make a call `delay` seconds from now; early by less than a millisecond at most."""

    def aside(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Run `work` in another thread, and then call `then` with its result; one after the other, in order.

        `work` must raise nothing.
        """


class Ticker:
    """Makes a call every so many seconds, from `begin` until `close`."""

    def __init__(self, clock: Clock, seconds: float, call: Callable[[], None]) -> None:
        self._clock = clock
        self._seconds = seconds
        self._call = call
        self._timer: Timer | None = None

    def begin(self) -> None:
        self._timer = self._clock.later(self._seconds, self._tick)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self.begin()
        self._call()


class LoopClock:
    """The clock of a running asyncio loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._thread: ThreadPoolExecutor | None = None
        self.now = time.monotonic

    def soon(self, call: Callable[[], None]) -> None:
        self._loop.call_soon(call)

    def later(self, delay: float, call: Callable[[], None]) -> Timer:
        # uvloop's timers step by a millisecond: round up, and never busy-wait on zero.
        return self._loop.call_later(max(1, math.ceil(delay * 1000)) / 1000, call)

    def aside(self, work: Callable[[], T], then: Callable[[T], None]) -> None:
        if self._thread is None:  # seldom needed: a thread of its own, so that nothing else delays it
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="aside")
        done = self._loop.run_in_executor(self._thread, work)
        done.add_done_callback(lambda future: then(future.result()))


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
