"""The pieces of one row that runs on its own: they never wait, and a client that does not read is cut (credit.py)."""

from handlers import wire
from handlers.credit import Windows
from handlers.process.connection import DaemonConnection
from handlers.requests.rows import failure

LEFT = failure("The client does not wait for the rest.")


class RowWindow:
    """The window of one row's client; costs nothing before the first piece."""

    __slots__ = ("_connection", "_number", "_windows")

    def __init__(self, connection: DaemonConnection, number: int) -> None:
        self._connection = connection
        self._number = number
        self._windows: Windows | None = None

    @property
    def shut(self) -> bool:
        """Whether the client has gone, or was cut."""
        return self._windows is not None and 0 in self._windows.cut

    def passes(self, piece: wire.Answer) -> bool:
        """Charge a piece, and return whether it goes out; cut the client if it has `LATE_WINDOW` unread bytes."""
        if self._windows is None:
            self._windows = Windows(0.0)  # without patience: the window is the late one
            self._connection.open(self._number, self._windows)
        with self._connection.news:
            now, later = self._windows.split([(0, piece)])
            if later:
                self._windows.cut.add(0)
        if later:
            self._connection.send(wire.Cut(self._number, [0]))
        return bool(now)

    def close(self, answer: wire.Answer) -> wire.Answer:
        """Apply no further credit; return the answer that ends the row."""
        if self._windows is None:
            return answer
        self._connection.close(self._number)
        return LEFT if self.shut else answer
