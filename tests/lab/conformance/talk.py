"""Send bytes, and take down what comes back: nothing is smoothed by a client library."""

import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

PATIENCE = 60.0  # seconds for an answer: TorchServe takes some to load a model
SILENCE = 4.0  # seconds without an answer that count as none, where none is expected

Address = tuple[str, int] | str  # host and port, or the path of a Unix socket


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer as it came.

    Attributes:
        status: 0 if the connection was closed without one, -1 if nothing came in time.
        headers: names and values as sent, in order.
        body: without the chunks' framing.
        closed: the server closed the connection after it.
    """

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    closed: bool

    def header(self, name: str) -> str | None:
        """The value of a header; None if there is none of that name."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class _Ended(Exception):
    """The server closed its side."""


class _Reader:
    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._data = b""

    def _more(self) -> None:
        try:
            data = self._connection.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        if not data:
            raise _Ended
        self._data += data

    def until(self, mark: bytes) -> bytes:
        while mark not in self._data:
            self._more()
        found, _, self._data = self._data.partition(mark)
        return found

    def exactly(self, count: int) -> bytes:
        while len(self._data) < count:
            self._more()
        found, self._data = self._data[:count], self._data[count:]
        return found

    def rest(self) -> bytes:
        try:
            while True:
                self._more()
        except _Ended:
            return self._data


class Line:
    """A connection whose answer has been read: is it closed?"""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def closed(self, answer: Answer) -> bool:
        """Return whether the server closed the connection, and close it. A late call need not wait for an open one."""
        with self._connection as connection:
            connection.settimeout(SILENCE if (answer.header("connection") or "").lower() == "close" else 0.0)
            try:
                return not connection.recv(1)
            except (TimeoutError, BlockingIOError):
                return False
            except ConnectionResetError:
                return True


def talk(address: Address, request: bytes, patience: float = PATIENCE) -> tuple[Answer, Line]:
    """Send one request on a connection of its own, and read its answer; interim answers are skipped.

    Returns:
        The answer, with `closed` still False, and the connection, to be asked for it later.
    """
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    line = Line(connection)
    connection.settimeout(patience)
    try:
        connection.connect(address)
    except OSError:
        connection.close()
        raise
    try:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # answered before all was read
            connection.sendall(request)
        return _read(_Reader(connection), head_only=request.startswith(b"HEAD ")), line
    except _Ended:
        return Answer(0, "", (), b"", False), line
    except TimeoutError:
        return Answer(-1, "", (), b"", False), line


def _read(reader: _Reader, *, head_only: bool) -> Answer:
    status = 100
    while 100 <= status < 200:
        first, *lines = reader.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        _, code, reason = (first + "  ").split(" ", 2)
        status = int(code)
    pairs = (line.partition(":") for line in lines)
    headers = tuple((name, value.strip()) for name, _, value in pairs)
    known = {name.lower(): value for name, value in headers}
    if head_only or status in (204, 304):
        body = b""
    elif "chunked" in known.get("transfer-encoding", "").lower():
        body = _chunks(reader)
    elif "content-length" in known:
        body = reader.exactly(int(known["content-length"]))
    else:
        body = reader.rest()
    return Answer(status, reason.strip(), headers, body, False)


def _chunks(reader: _Reader) -> bytes:
    pieces = []
    while size := int(reader.until(b"\r\n").partition(b";")[0], 16):
        pieces.append(reader.exactly(size))
        reader.exactly(2)
    reader.until(b"\r\n")
    return b"".join(pieces)


def eventually(address: Address, request: bytes, done: Callable[[Answer], bool]) -> tuple[Answer, Line]:
    """Ask again until an answer is `done`, for `PATIENCE` seconds; give the last."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer, line = talk(address, request)
        if done(answer) or time.monotonic() > deadline:
            return answer, line
        line.closed(answer)
        time.sleep(0.05)
