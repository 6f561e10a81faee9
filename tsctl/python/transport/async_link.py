"""One keep-alive connection of the asyncio client: a pair of streams, and the reader of an answer."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

from tsctl.python.answers import ReceivedAnswer
from tsctl.python.calls import Call, CallTime, request_head
from tsctl.python.errors import CannotConnect, ConnectionLost, DeadlineExceeded
from tsctl.python.transport.address import DaemonAddress
from tsctl.python.transport.link import PIECE, readable, tls_context, why_not
from tsctl.python.transport.reader import AnswerReader

if TYPE_CHECKING:
    import ssl


class AsyncLink:
    """A connection to a daemon, made by `connect`; one call after the other."""

    def __init__(self, address: DaemonAddress, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._address = address
        self._reader = reader
        self._writer = writer
        self._answer = AnswerReader()
        self._first = b""
        self._limit: CallTime | None = None

    @property
    def usable(self) -> bool:
        """Whether another call can be sent: the daemon has neither closed the connection, nor sent more than asked."""
        if self._reader.at_eof() or self._writer.is_closing():
            return False
        # The loop learns of the end only in its next turn.
        return not readable(self._writer.get_extra_info("socket").fileno())

    def close(self) -> None:
        with contextlib.suppress(RuntimeError):  # its event loop is closed
            self._writer.transport.abort()

    async def send(self, call: Call, limit: CallTime) -> tuple[int, dict[str, str]]:
        """Send a call; return the status and the headers of its answer, whose body is then read by `pieces`.

        Raises:
            ConnectionLost: the connection broke.
            DeadlineExceeded: the deadline passed.
            UnreadableAnswer: the answer is not HTTP.
            ValueError: a header cannot be sent.
        """
        self._answer, self._limit = AnswerReader(), limit
        try:
            head = request_head(call, self._address, limit.left(time.monotonic()))
            async with _bounded(limit):
                # A daemon that refuses a large body answers before it has read it, and may close then.
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self._writer.writelines((head, call.body))
                    await self._writer.drain()
                self._first = b""
                while not self._answer.status:
                    self._first = await self._more()
        except BaseException:
            self.close()
            raise
        return self._answer.status, self._answer.headers

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it comes; to the end, or the connection is closed.

        Raises:
            ConnectionLost: the connection broke before the end.
            DeadlineExceeded: the deadline passed.
        """
        assert self._limit is not None
        try:
            piece = self._first
            while True:
                if piece:
                    yield piece
                if self._answer.whole:
                    break
                async with _bounded(self._limit):
                    piece = await self._more()
        finally:
            if not self._answer.reusable:
                self.close()

    async def answer(self, call: Call, limit: CallTime) -> ReceivedAnswer:
        """Send a call and return its whole answer; raises as `send` does."""
        status, headers = await self.send(call, limit)
        async with contextlib.aclosing(self.pieces()) as pieces:
            return ReceivedAnswer(status, headers, b"".join([piece async for piece in pieces]))

    async def _more(self) -> bytes:
        try:
            data = await self._reader.read(PIECE)
        except OSError as error:
            raise ConnectionLost(f"the connection to `{self._address}` broke off: {error}") from None
        if data:
            return self._answer.feed(data)
        self._answer.end()
        return b""


async def connect(address: DaemonAddress, tls: "ssl.SSLContext | None", limit: CallTime) -> AsyncLink:
    """Connect to a daemon.

    Raises:
        CannotConnect: no daemon listens there, or this user may not connect.
        DeadlineExceeded: the deadline passed.
    """
    try:
        async with _bounded(limit):
            if address.socket is not None:
                streams = await asyncio.open_unix_connection(str(address.socket))
            elif address.tls:
                context = tls_context(tls)
                streams = await asyncio.open_connection(
                    address.host, address.port, ssl=context, server_hostname=address.host
                )
            else:
                streams = await asyncio.open_connection(address.host, address.port)
    except DeadlineExceeded:
        raise
    except OSError as error:  # of TLS, too
        raise CannotConnect(why_not(address, error)) from None
    return AsyncLink(address, *streams)


@contextlib.asynccontextmanager
async def _bounded(limit: CallTime) -> AsyncIterator[None]:
    """Bound the block by the deadline.

    Raises:
        DeadlineExceeded: the deadline passed.
    """
    left = limit.left(time.monotonic())
    try:
        async with asyncio.timeout(left):
            yield
    except DeadlineExceeded:
        raise
    except TimeoutError:
        limit.left(time.monotonic())
        raise DeadlineExceeded("the deadline passed before the answer was complete") from None
