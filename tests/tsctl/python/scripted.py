"""A peer of the clients on a Unix socket: it reads requests, and answers with the bytes that it is told."""

import contextlib
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

CLOSE = b"CLOSE"  # as a piece of an answer: close the connection


class Asked(NamedTuple):
    """A request that the peer has read; `connection` counts them from 0."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def path(self) -> str:
        return self.line.split(" ")[1]


def answer(body: bytes = b"", status: int = 200, **headers: str) -> bytes:
    """Write an answer with a length; `_` in a header's name stands for `-`."""
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} X\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def chunked(*pieces: bytes, **headers: str) -> bytes:
    """Write an answer in chunks."""
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))
    return f"HTTP/1.1 200 OK\r\n{head}Transfer-Encoding: chunked\r\n\r\n".encode() + body


class ScriptedDaemon:
    """A Unix socket that answers the requests that come, one after the other, as the script says.

    Args:
        script: an answer for each request: bytes, or a list of bytes and `CLOSE`; an answer without `CLOSE` leaves the
            connection open.

    Attributes:
        asked: the requests so far.
        between: called before each piece of an answer after the first.
    """

    def __init__(self, path: Path, script: Sequence[bytes | list[bytes]]) -> None:
        self.path = path
        self.asked: list[Asked] = []
        self.between: Callable[[], object] = lambda: None
        self._script = iter(script)
        self._connections = 0
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`
        self._threads[0].join()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection, self._connections), daemon=True)
            self._connections += 1
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection, connection.makefile("rb") as stream:
            while line := stream.readline().decode().strip():
                lines = iter(lambda: stream.readline().decode().strip(), "")
                headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in lines)}
                body = stream.read(int(headers.get("content-length", 0)))
                self.asked.append(Asked(line, headers, body, number))
                pieces = next(self._script)
                for index, piece in enumerate([pieces] if isinstance(pieces, bytes) else pieces):
                    if index:
                        self.between()
                    if piece == CLOSE:
                        connection.shutdown(socket.SHUT_RDWR)
                        return
                    try:
                        connection.sendall(piece)
                    except OSError:
                        return  # the client has left
