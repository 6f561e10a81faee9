"""One connection of the load generator: a request out, a response in, then the next.

CONNECTING ──▶ IDLE ◀──send, answer──▶ BUSY
    │            │                       │
    └────────────┴───────lost────────────┴──▶ CLOSED
"""

import asyncio
import time
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol, cast

import httptools

from tsctl.loadgen.order import PreparedOrder, no_delay

SHOWN = 2000  # characters, or bytes, of an error's body


class LoadConnectionState(Enum):
    CONNECTING = auto()  # not yet usable
    IDLE = auto()  # ready for a request
    BUSY = auto()  # waiting for a response
    CLOSED = auto()  # closed or lost


class ConnectionUser(Protocol):
    """The user of a connection: one of the loops."""

    def free(self, connection: "LoadConnection") -> None:
        """The connection is ready for a request."""

    def answered(self, connection: "LoadConnection", status: int, length: int) -> None:
        """The response is complete; `free` or `lost` follows."""

    def lost(self, connection: "LoadConnection", owing: bool) -> None:
        """The connection is closed; `owing`: before or in the middle of a response."""


class LoadConnection(asyncio.Protocol):
    """A connection, and its current request.

    Attributes:
        intended: when the request was meant to start, on `time.monotonic`.
        sent: when the request was sent.
        body: the last response's, if `keep` is set; of an error the beginning.
    """

    def __init__(self, client: ConnectionUser, request: bytes, *, keep: bool = False) -> None:
        self.state = LoadConnectionState.CONNECTING
        self.intended = 0.0
        self.sent = 0.0
        self.body = b""
        self._client = client
        self._request = request
        self._keep = keep
        self._length = 0
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)

    def __repr__(self) -> str:
        return f"<LoadConnection {self.state.name}>"

    def send(self, intended: float) -> None:
        """Send the request; the connection must be idle."""
        assert self.state is LoadConnectionState.IDLE
        self.state = LoadConnectionState.BUSY
        self.intended = intended
        self.sent = time.monotonic()
        self._length = 0
        self.body = b""
        self._transport.write(self._request)

    def abort(self) -> None:
        """Close the connection now; the client's `lost` follows."""
        if self.state is not LoadConnectionState.CONNECTING:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            no_delay(sock)
        self.state = LoadConnectionState.IDLE
        self._client.free(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the reason does not matter
        owing = self.state is LoadConnectionState.BUSY
        self.state = LoadConnectionState.CLOSED
        self._client.lost(self, owing)

    # The parser's callbacks. There is no `on_header`: a call for each header would be wasted.

    def on_body(self, body: bytes) -> None:
        self._length += len(body)
        if self._keep or (self._parser.get_status_code() >= 400 and len(self.body) < SHOWN):
            self.body += body

    def on_message_complete(self) -> None:
        if self._parser.get_status_code() < 200:
            return
        if self.state is not LoadConnectionState.BUSY:
            return
        self.state = LoadConnectionState.IDLE
        self._client.answered(self, self._parser.get_status_code(), self._length)
        if not self._parser.should_keep_alive():
            self._transport.close()
        else:
            self._client.free(self)


class NoResponse(Exception):
    """There was no response."""


@dataclass(frozen=True, slots=True)
class FirstResponse:
    """The first response; `seconds` from the connection's start."""

    status: int
    body: bytes
    seconds: float


class _Once:
    def __init__(self, answer: "asyncio.Future[int]") -> None:
        self._answer = answer

    def free(self, connection: LoadConnection) -> None:
        if not self._answer.done():
            connection.send(time.monotonic())

    def answered(self, connection: LoadConnection, status: int, length: int) -> None:  # noqa: ARG002
        self._answer.set_result(status)

    def lost(self, connection: LoadConnection, owing: bool) -> None:  # noqa: ARG002
        if not self._answer.done():
            self._answer.set_exception(NoResponse("the connection was closed before the first answer"))


async def ask_once(sending: PreparedOrder, loop: asyncio.AbstractEventLoop) -> FirstResponse:
    """Send the request on a separate connection.

    Raises:
        NoResponse: the request could not be sent, or was not answered in time.
    """
    answer: asyncio.Future[int] = loop.create_future()
    connection = LoadConnection(_Once(answer), sending.request, keep=True)
    began = time.monotonic()
    try:
        if sending.order.unix:
            await loop.create_unix_connection(lambda: connection, **sending.connect_options)
        else:
            await loop.create_connection(lambda: connection, **sending.connect_options)
    except OSError as error:
        raise NoResponse(f"cannot connect: {error.strerror or error}") from None
    try:
        status = await asyncio.wait_for(answer, sending.order.timeout)
    except TimeoutError:
        raise NoResponse(f"the first request was not answered within {sending.order.timeout:g} s") from None
    finally:
        connection.abort()
    return FirstResponse(status, connection.body, time.monotonic() - began)
