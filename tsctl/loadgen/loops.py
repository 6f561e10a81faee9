"""The open loop, whose requests start at scheduled times, and the closed one, whose clients send after their response.

In the open loop a request without an idle connection waits for one, and a further connection is opened; the wait counts
as latency, as does any delay of this process.
"""

import asyncio
import ctypes
import os
import random
import time
from collections import deque
from collections.abc import Callable

from tsctl.loadgen.connection import LoadConnection, LoadConnectionState
from tsctl.loadgen.loop import Loop
from tsctl.loadgen.order import PreparedOrder

_CLOCK_MONOTONIC = 1
_TFD_TIMER_ABSTIME = 1
_TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class _Times(ctypes.Structure):
    """`struct itimerspec`, see timerfd_settime(2)."""

    _fields_ = (
        ("interval_s", ctypes.c_long), ("interval_ns", ctypes.c_long),
        ("value_s", ctypes.c_long), ("value_ns", ctypes.c_long),
    )  # fmt: skip


class TimerFd:
    """A timer that is exact to some ten microseconds. uvloop's timers step by a millisecond.

    In an open loop of 1 000 requests a second, a step of a millisecond would start a request up to a millisecond late,
    and send the requests of one step together, as an unwanted burst.

    Raises:
        OSError: the kernel cannot create a timer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        self._loop = loop
        self._call = call
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        loop.add_reader(self._fd, self._expired)

    def at(self, moment: float) -> None:
        """Call back at `moment`; at once if it has passed.

        Raises:
            OSError: the kernel refuses the time.
        """
        nanoseconds = max(1, int(moment * 1e9))
        times = _Times(0, 0, *divmod(nanoseconds, 10**9))
        if self._libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, ctypes.byref(times), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        self._loop.remove_reader(self._fd)
        os.close(self._fd)

    def _expired(self) -> None:
        os.read(self._fd, 8)
        self._call()


class OpenLoop(Loop):
    """Sends `rate` requests a second, over as many connections as needed, at most `connections`."""

    def __init__(self, sending: PreparedOrder, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(sending, loop)
        assert sending.order.rate is not None
        self._gap = 1.0 / sending.order.rate
        self._poisson = sending.order.spacing == "poisson"
        self._random = random.Random()
        self._next = 0.0
        self._due: deque[float] = deque()  # intended starts of requests without a connection
        self._idle: list[LoadConnection] = []
        self._timer = TimerFd(loop, self._arrive)

    def _start(self) -> None:
        self._next = self.began
        self._arrive()

    def free(self, connection: LoadConnection) -> None:
        if self._due:
            connection.send(self._due.popleft())
        else:
            self._idle.append(connection)
            self._finish()

    def lost(self, connection: LoadConnection, owing: bool) -> None:
        if connection in self._idle:
            self._idle.remove(connection)
        super().lost(connection, owing)

    def _replace(self) -> None:
        self._open_more()
        self._finish()

    def _refused(self) -> None:
        while self._due:
            self._due.popleft()
            self.tally.failed("refused")

    def _arrive(self) -> None:
        """Start all due requests, and set the timer for the next."""
        now = time.monotonic()
        while self._next <= now and self._take():
            self._due.append(self._next)
            self._next += self._random.expovariate(1.0) * self._gap if self._poisson else self._gap
        while self._due and self._idle:
            self._idle.pop().send(self._due.popleft())
        self._open_more()
        if not self.stopping and self._left != 0:
            self._timer.at(self._next)

    def _open_more(self) -> None:
        coming = sum(connection.state is LoadConnectionState.CONNECTING for connection in self._connections) + len(
            self._opening
        )
        room = self._order.connections - len(self._connections)
        for _ in range(min(room, len(self._due) - coming)):
            self._open()

    def _close(self) -> None:
        self._timer.close()
        super()._close()

    def _finish(self) -> None:
        wanted = self._order.requests
        if wanted is not None and not self.stopping and self.tally.ended >= wanted:
            self._stop_sending()

    def _stop_sending(self) -> None:
        super()._stop_sending()
        for _ in range(len(self._due)):  # due, but never started
            self.tally.failed("unanswered")
        self._due.clear()


class ClosedLoop(Loop):
    """Keeps `connections` connections busy."""

    def _start(self) -> None:
        wanted = self._order.connections
        for _ in range(wanted if self._left is None else min(wanted, self._left)):
            self._open()

    def free(self, connection: LoadConnection) -> None:
        if self._take():
            connection.send(time.monotonic())
        elif self._idle_now():
            self._stop_sending()

    def _replace(self) -> None:
        if self._left != 0:
            self._open()
        elif self._idle_now():
            self._stop_sending()

    def _refused(self) -> None:
        if self._take():  # a request that could not even be sent
            self.tally.failed("refused")

    def _idle_now(self) -> bool:
        return self._order.requests is not None and self.tally.ended >= self._order.requests
