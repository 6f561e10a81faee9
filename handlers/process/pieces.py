"""Sends the pieces of a batch's responses, as fast as their clients read them (credit.py)."""

import threading
import time
from collections.abc import Callable
from typing import Protocol

from tsctl.handlers import wire
from tsctl.handlers.credit import Windows
from tsctl.handlers.requests.rows import failure


class Conversation(Protocol):
    """The connection to the daemon, as the pieces of a batch use it.

    Attributes:
        news: guards the open windows.
    """

    news: threading.Condition

    def send(self, message: wire.ToDaemon) -> None: ...

    def open(self, batch: int, windows: Windows) -> None:
        """Apply credits for this batch to `windows` from now on."""

    def close(self, batch: int) -> None: ...

    def wait(self, done: Callable[[], bool], seconds: float) -> bool:
        """Read until `done`; return whether `done` became true in time. Several threads may wait."""


class Pieces:
    """Takes the pieces of one batch; costs nothing while there are none.

    Attributes:
        waited: seconds the batch spent waiting for its clients.
    """

    __slots__ = ("_batch", "_closed", "_connection", "_windows", "waited")

    def __init__(self, connection: Conversation, batch: int) -> None:
        self.waited = 0.0
        self._connection = connection
        self._batch = batch
        self._windows: Windows | None = None
        self._closed = False

    def __call__(self, pieces: list[tuple[int, wire.Answer]]) -> None:
        """Send (row, piece) pairs; wait for clients that have much to read already. Empty: the batch continues.

        Raises:
            Disconnected: the handler closed the connection.
            BrokenPipeError: the daemon is gone.
            ConnectionResetError: the daemon is gone.
        """
        if self._closed:
            return  # from a thread of the handler that outlives its batch
        if not pieces:
            self._connection.send(wire.Chunk(self._batch, pieces))
            return
        if self._windows is None:
            self._windows = Windows()
            self._connection.open(self._batch, self._windows)
        windows = self._windows
        with self._connection.news:
            ready, short = windows.split(pieces)
        while True:
            if ready or not short:  # an empty Chunk says that the batch continues, even if all clients are gone
                self._connection.send(wire.Chunk(self._batch, ready))
            if not short or self._closed:
                return
            cut = self._wait(windows, short)
            if cut:
                self._connection.send(wire.Cut(self._batch, cut))
            with self._connection.news:
                ready, short = windows.split(short)

    def _wait(self, windows: Windows, short: list[tuple[int, wire.Answer]]) -> list[int]:
        """Wait for the clients of these pieces; return the newly cut rows."""
        with self._connection.news:
            windows.begin_wait()
            patience = max(0.0, windows.patience)
        began = time.monotonic()
        in_time = self._connection.wait(lambda: self._closed or windows.may_go_on(short), patience)
        seconds = time.monotonic() - began
        self.waited += seconds
        with self._connection.news:
            return windows.end_wait(seconds if in_time else max(seconds, patience), short)

    def last(self, answers: list[wire.Answer]) -> list[wire.Answer]:
        """Return the answers that complete the batch, without those of cut rows; ignore later pieces."""
        self._closed = True
        if self._windows is None:
            return answers
        self._connection.close(self._batch)
        cut = self._windows.cut
        return (
            [
                failure("The client does not wait for the rest.") if row in cut else answer
                for row, answer in enumerate(answers)
            ]
            if cut
            else answers
        )
