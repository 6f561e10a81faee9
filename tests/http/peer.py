"""The other end of a connection: a listener on a fake clock, and a client that counts what it gets."""

import http.client
import io
import itertools
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from tests.http.fake import FakeTransport
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.http.connection import CONTINUE
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import Listener
from tsctl.daemon.http.messages import Request, Response

LIMITS = HttpLimits(max_body=1000, max_head=2000, max_headers=10, pipeline=3)
GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def get(target: str) -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


def post(body: bytes, *headers: str) -> bytes:
    lines = ["POST / HTTP/1.1", "Host: a", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(*chunks: bytes) -> bytes:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def echo(exchange: Exchange) -> None:
    exchange.respond(Response(200, bytes(exchange.request.body)))


@dataclass
class Answer:
    """An answer as the standard library's client reads it; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def keeps(self) -> bool:
        return self.headers["connection"] == "keep-alive"


class _Bytes(io.BytesIO):
    """Stands for a socket, and stays open when one answer has been read."""

    def makefile(self, mode: str) -> io.BytesIO:
        return self

    def close(self) -> None: ...


def responses(data: bytes, methods: Iterable[str] = ()) -> Iterator[http.client.HTTPResponse]:
    """Yield answers one after the other, each to be read; to requests of these methods, and after those GET."""
    stream = _Bytes(data)
    asked = itertools.chain(methods, itertools.repeat("GET"))
    while stream.tell() < len(data):
        if data[stream.tell() :] == CONTINUE:
            break  # the rest of the body, and so the answer, is still to come
        response = http.client.HTTPResponse(cast(socket.socket, stream), method=next(asked))
        response.begin()
        yield response


def read_answers(data: bytes, methods: Iterable[str] = ()) -> list[Answer]:
    """Read answers one after the other; to requests of these methods, and after those GET."""
    return [
        Answer(each.status, {name.lower(): value for name, value in each.getheaders()}, each.read())
        for each in responses(data, methods)
    ]


class Server:
    """A listener; `exchanges` has each request, for the test to answer."""

    def __init__(
        self,
        application: Callable[[Exchange], None] = lambda exchange: None,
        limits: HttpLimits = LIMITS,
        peer_allowed: Callable[[int], bool] = lambda uid: True,
        admit: Callable[[Request], None] | None = None,
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.clock = FakeClock()
        self.exchanges: list[Exchange] = []
        self.log: list[tuple[str, int, float]] = []
        self._application = application
        self.listener = Listener(
            self._take, limits, self.clock, self._access, peer_allowed, admit=admit, headers=headers
        )

    def _take(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        self._application(exchange)

    def _access(self, request: Request, status: int, seconds: float) -> None:
        self.log.append((request.target, status, seconds))

    def connect(self, **extra: Any) -> "Peer":
        return Peer(self, **extra)


class Peer:
    """One client's connection."""

    def __init__(self, server: Server, **extra: Any) -> None:
        self._clock = server.clock
        self.connection = server.listener.connect()
        self.transport = FakeTransport(self.connection, self._clock.soon, **extra)
        self._clock.settle()

    def send(self, data: bytes) -> None:
        self.transport.receive(data)
        self._clock.settle()

    def finish(self) -> None:
        """Close the client's side."""
        self.transport.receive_eof()
        self._clock.settle()

    def leave(self) -> None:
        self.transport.lose()
        self._clock.settle()

    @property
    def answers(self) -> list[Answer]:
        return read_answers(bytes(self.transport.written))

    @property
    def statuses(self) -> list[int]:
        return [answer.status for answer in self.answers]

    @property
    def bodies(self) -> list[bytes]:
        return [answer.body for answer in self.answers]
