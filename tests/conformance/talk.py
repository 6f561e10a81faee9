"""Send bytes, and take down what comes back: nothing is smoothed by a client library."""

import contextlib
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

PATIENCE = 60.0  # seconds for an answer: TorchServe takes some to load a model
SILENCE = 4.0  # seconds without an answer that count as none, where none is expected
_LOOK_FOR_CLOSE = 0.03  # seconds to see whether a server closes that does not say so

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

    def ended_within(self, seconds: float) -> bool:
        self._connection.settimeout(seconds)
        try:
            self._more()
        except _Ended:
            return True
        except TimeoutError:
            pass
        return False


def talk(address: Address, request: bytes, patience: float = PATIENCE) -> Answer:
    """Send one request on a connection of its own, and read its answer; interim answers are skipped."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as connection:
        connection.settimeout(patience)
        connection.connect(address)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # answered before all was read
            connection.sendall(request)
        try:
            return _read(_Reader(connection), head_only=request.startswith(b"HEAD "))
        except _Ended:
            return Answer(0, "", (), b"", True)
        except TimeoutError:
            return Answer(-1, "", (), b"", False)


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
    said = known.get("connection", "").lower()
    closed = reader.ended_within(SILENCE if said == "close" else _LOOK_FOR_CLOSE)
    return Answer(status, reason.strip(), headers, body, closed)


def _chunks(reader: _Reader) -> bytes:
    pieces = []
    while size := int(reader.until(b"\r\n").partition(b";")[0], 16):
        pieces.append(reader.exactly(size))
        reader.exactly(2)
    reader.until(b"\r\n")
    return b"".join(pieces)


def eventually(address: Address, request: bytes, done: Callable[[Answer], bool]) -> Answer:
    """Ask again until an answer is `done`, for `PATIENCE` seconds; give the last."""
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = talk(address, request)
        if done(answer) or time.monotonic() > deadline:
            return answer
        time.sleep(0.05)
