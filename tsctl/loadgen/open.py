"""The open loop: requests start at scheduled times.

A request without an idle connection waits for one, and a further connection is opened; the wait counts as latency, as
does any delay of this process.
"""

import asyncio
import random
import time
from collections import deque

from tsctl.loadgen.connection import LoadConnection, LoadConnectionState
from tsctl.loadgen.loop import Loop
from tsctl.loadgen.order import PreparedOrder
from tsctl.loadgen.timer import TimerFd


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
