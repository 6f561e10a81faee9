"""Time for the daemon's decisions: the event loop's, or a test's.

Decisions take the time as an argument; their callers read it from a
`Clock`, once per wake-up. Tests and simulations run the same objects on a clock
of their own, without sleeping.
"""

import asyncio
import math
import time
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
