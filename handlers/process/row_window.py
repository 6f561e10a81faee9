"""The pieces of one row that runs on its own: they never wait, and a client that does not read is cut (credit.py)."""

from collections.abc import Callable
from typing import Protocol

from tsctl.handlers import wire
from tsctl.handlers.credit import LATE_WINDOW, OVERHEAD
from tsctl.handlers.process.connection import Credited
from tsctl.handlers.requests.rows import failure

LEFT = failure("The client does not wait for the rest.")


class RowConnection(Protocol):
    """The connection to the daemon, as rows use it (`DaemonConnection`)."""

    def send(self, message: wire.ToDaemon) -> None: ...

    def open(self, batch: int, windows: Credited) -> None:
        """Apply credits for this row to `windows` from now on."""

    def close(self, batch: int) -> None: ...


class RowWindow:
    """The window of one row's client; costs nothing before the first piece.

    Attributes:
        room: bytes that the client may still have unread; while there are any, a piece goes out whatever its size, and
            its sender may charge it here instead of by `passes`. 0 before the first piece, and if `shut`.
        shut: nobody waits for the rest: the client has gone, or was cut.

    Args:
        on_shut: called when `shut` becomes true.
    """

    __slots__ = ("_connection", "_number", "_on_shut", "_opened", "room", "shut")

    def __init__(self, connection: RowConnection, number: int, on_shut: Callable[[], None] = lambda: None) -> None:
        self.room = 0
        self.shut = False
        self._opened = False
        self._on_shut = on_shut
        self._connection = connection
        self._number = number

    def grant(self, row: int, count: int) -> None:  # noqa: ARG002 - there is one row
        """Apply a Credit of the daemon."""
        if count <= 0:
            self.leave()
        elif not self.shut:
            self.room += count

    def leave(self) -> None:
        """Note that nobody waits for the rest."""
        self.shut = True
        self.room = 0
        self._on_shut()

    def passes(self, size: int) -> bool:
        """Charge a piece, and return whether it goes out; cut the client if it has `LATE_WINDOW` unread bytes.

        Args:
            size: the bytes of its body.
        """
        if self.shut:
            return False
        if not self._opened:
            self._opened = True
            self.room = LATE_WINDOW
            self._connection.open(self._number, self)
        if self.room <= 0:
            self.leave()
            self._connection.send(wire.Cut(self._number, [0]))
            return False
        self.room -= size + OVERHEAD
        return True

    def close(self, answer: wire.Answer) -> wire.Answer:
        """Apply no further credit; return the answer that ends the row."""
        if self._opened:
            self._connection.close(self._number)
        return LEFT if self.shut else answer
