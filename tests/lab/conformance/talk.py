"""Send bytes, and take down what comes back: the requests are no client library's."""

import contextlib
import http.client
import socket
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
        response = http.client.HTTPResponse(connection, method=request.partition(b" ")[0].decode("latin-1"))
        response.begin()
        return Answer(response.status, response.reason, tuple(response.getheaders()), response.read(), False), line
    except (ConnectionError, http.client.HTTPException):
        return Answer(0, "", (), b"", False), line
    except TimeoutError:
        return Answer(-1, "", (), b"", False), line
