"""The base of the closed and the open loop: replaced connections, timeouts, and the end of a run."""

import asyncio
import time
from abc import ABC, abstractmethod
from typing import Literal

from tsctl.loadgen.connection import LoadConnection, LoadConnectionState
from tsctl.loadgen.order import PreparedOrder
from tsctl.loadgen.tally import Tally

AGAIN = 0.1  # seconds until a refused connection is retried
TICK = 0.2  # seconds between checks of timeouts
GOODBYE = 1.0  # seconds that responses still have after the run is broken off


class Loop(ABC):
    """One run.

    Attributes:
        began: when the first request was meant to start.
        stopping: no more requests start.
    """

    def __init__(self, sending: PreparedOrder, loop: asyncio.AbstractEventLoop) -> None:
        self.tally = Tally()
        self.began = 0.0
        self.stopping = False
        self._sending = sending
        self._order = sending.order
        self._loop = loop
        self._left = sending.order.requests  # requests not yet started; None for no limit
        self._connections: set[LoadConnection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._ended = asyncio.Event()

    @property
    def seconds(self) -> float:
        return (self.tally.closed_at or time.monotonic()) - self.began

    async def run(self, broken_off: asyncio.Event) -> None:
        """Send requests until the order's end, or until `broken_off`; wait for the last responses."""
        self.began = time.monotonic()
        limit = self._order.seconds
        deadline = None if limit is None else self.began + limit
        cut = self._loop.create_task(broken_off.wait())
        self._start()
        while not self._ended.is_set() and not cut.done():
            now = time.monotonic()
            self._expire(now)
            if deadline is not None and now >= deadline:
                break
            pause = TICK if deadline is None else min(TICK, deadline - now)
            await self._wait(pause, cut)
        self._stop_sending()
        patience = time.monotonic() + (GOODBYE if cut.done() else self._order.timeout)
        while not self._ended.is_set() and time.monotonic() < patience:
            await self._wait(TICK, cut)
            if cut.done():
                patience = min(patience, time.monotonic() + GOODBYE)
            self._expire(time.monotonic())
        cut.cancel()
        self._close()

    def _close(self) -> None:
        for task in self._opening:
            task.cancel()
        left, self._connections = self._connections, set()
        for connection in left:
            if connection.state is LoadConnectionState.BUSY:
                self.tally.failed("unanswered")
            connection.abort()

    # The loops implement these.

    @abstractmethod
    def _start(self) -> None:
        """Start sending."""

    @abstractmethod
    def free(self, connection: LoadConnection) -> None:
        """Use an idle connection."""

    @abstractmethod
    def _replace(self) -> None:
        """Replace a lost or refused connection."""

    @abstractmethod
    def _refused(self) -> None:
        """Count a refused connection."""

    # The connections' callbacks.

    def answered(self, connection: LoadConnection, status: int, length: int) -> None:
        self.tally.answered(status, length, time.monotonic() - connection.intended)
        if status >= 400:
            self.tally.explain(status, connection.body)
        if self.stopping:
            self._look_for_end()

    def lost(self, connection: LoadConnection, owing: bool) -> None:
        if connection not in self._connections:
            return  # the run is over, and the request was counted
        self._connections.discard(connection)
        if owing:
            late = time.monotonic() - connection.sent >= self._order.timeout
            self.tally.failed("timeout" if late else "closed")
        if self.stopping:
            self._look_for_end()
        else:
            self._replace()

    # Parts of the run.

    def _take(self) -> bool:
        """Return whether one more request may start, and count it as started."""
        if self.stopping or self._left == 0:
            return False
        if self._left is not None:
            self._left -= 1
        return True

    def _open(self) -> None:
        task = self._loop.create_task(self._connect())
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _connect(self) -> None:
        connection = LoadConnection(self, self._sending.request)
        self._connections.add(connection)
        options = self._sending.connect_options
        try:
            if self._order.unix:
                await self._loop.create_unix_connection(lambda: connection, **options)
            else:
                await self._loop.create_connection(lambda: connection, **options)
        except OSError:
            self._connections.discard(connection)
            self._refused()
            await asyncio.sleep(AGAIN)
            if not self.stopping:
                self._replace()

    def _expire(self, now: float) -> None:
        for connection in list(self._connections):
            if connection.state is LoadConnectionState.BUSY and now - connection.sent >= self._order.timeout:
                connection.abort()

    def _stop_sending(self) -> None:
        if not self.stopping:
            self.stopping = True
            self.tally.close(time.monotonic())
        self._look_for_end()

    def _look_for_end(self) -> None:
        if not any(connection.state is LoadConnectionState.BUSY for connection in self._connections):
            self._ended.set()

    async def _wait(self, seconds: float, cut: "asyncio.Task[Literal[True]]") -> None:
        ended = self._loop.create_task(self._ended.wait())
        await asyncio.wait((ended, cut), timeout=max(0.001, seconds), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
