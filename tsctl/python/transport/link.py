"""One keep-alive connection to a daemon, whichever client has it: a request out, an answer in.

The coroutines here wait only for their `Stream`. Over one that blocks (blocking.py) they end without a pause, so that
`finish` runs them without an event loop; over asyncio's (waiting.py) they are awaited.
"""

import contextlib
import select
import time
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Protocol, TypeVar

from tsctl.python.answers import ReceivedAnswer
from tsctl.python.calls import Call, CallTime, request_head
from tsctl.python.errors import CannotConnect, ConnectionLost, DeadlineExceeded
from tsctl.python.transport.address import DaemonAddress
from tsctl.python.transport.reader import AnswerReader

if TYPE_CHECKING:
    import ssl

PIECE = 64 * 1024  # bytes that are read at most at once
T = TypeVar("T")


class Stream(Protocol):
    """The bytes of a connection. `timeout` is in seconds, None for no limit; after it TimeoutError is raised."""

    async def read(self, timeout: float | None) -> bytes:
        """Return what has arrived, at most `PIECE` bytes; empty at the end."""

    async def write(self, head: bytes, body: bytes, timeout: float | None) -> None:
        """Send all bytes."""

    @property
    def open(self) -> bool:
        """Whether this side has not closed the connection."""

    @property
    def usable(self) -> bool:
        """Whether the peer has neither closed the connection nor sent anything."""

    def close(self) -> None:
        """Close the connection at once."""


Connect = Callable[[DaemonAddress, "ssl.SSLContext | None", float | None], Awaitable[Stream]]


class Link:
    """A connection to a daemon, made by `open_link`; one call after the other."""

    def __init__(self, address: DaemonAddress, stream: Stream, limit: CallTime) -> None:
        self._address = address
        self._stream = stream
        self._limit = limit
        self._answer = AnswerReader()
        self._first = b""

    @property
    def open(self) -> bool:
        return self._stream.open

    @property
    def usable(self) -> bool:
        """Whether another call can be sent: the daemon has neither closed the connection, nor sent more than asked."""
        return self._stream.usable

    def close(self) -> None:
        self._stream.close()

    async def send(self, call: Call, limit: CallTime) -> tuple[int, dict[str, str]]:
        """Send a call; return the status and the headers of its answer, whose body is then read by `piece`.

        Raises:
            ConnectionLost: the connection broke.
            DeadlineExceeded: the deadline passed.
            UnreadableAnswer: the answer is not HTTP.
            ValueError: a header cannot be sent.
        """
        self._answer, self._limit, self._first = AnswerReader(), limit, b""
        try:
            left = limit.left(time.monotonic())
            head = request_head(call, self._address, left)
            # A daemon that refuses a large body answers before it has read it, and may close then.
            with self._translated(), contextlib.suppress(BrokenPipeError, ConnectionResetError):
                await self._stream.write(head, call.body, left)
            while not self._answer.status:
                self._first = await self._more()
        except BaseException:
            self.close()
            raise
        return self._answer.status, self._answer.headers

    async def piece(self) -> bytes:
        """Return what has come of the body; empty at its end. Who asks no more calls `leave`.

        Not an asynchronous generator: an event loop that runs where a blocking client begins one would end it.

        Raises:
            ConnectionLost: the connection broke before the end.
            DeadlineExceeded: the deadline passed.
        """
        piece, self._first = self._first, b""
        while not piece and not self._answer.whole:
            piece = await self._more()
        return piece

    def leave(self) -> None:
        """Close the connection, unless the answer was read to its end."""
        if not self._answer.reusable:
            self.close()

    async def rest(self, status: int, headers: dict[str, str]) -> ReceivedAnswer:
        """Return the whole answer that `send` has begun; raises as `piece` does."""
        pieces = []
        try:
            while piece := await self.piece():
                pieces.append(piece)
        finally:
            self.leave()
        return ReceivedAnswer(status, headers, b"".join(pieces))

    async def _more(self) -> bytes:
        left = self._limit.left(time.monotonic())
        with self._translated():
            data = await self._stream.read(left)
        if data:
            return self._answer.feed(data)
        self._answer.read_end()
        return b""

    @contextlib.contextmanager
    def _translated(self) -> Generator[None, None, None]:
        """Raise the clients' errors in place of the system's."""
        try:
            yield
        except OSError as error:
            if _ran_out(error):
                raise DeadlineExceeded("the deadline passed before the answer was complete") from None
            raise ConnectionLost(f"the connection to `{self._address}` broke off: {error}") from None


async def open_link(connect: Connect, address: DaemonAddress, tls: "ssl.SSLContext | None", limit: CallTime) -> Link:
    """Connect to a daemon.

    Args:
        tls: for https; None verifies the certificate with the system's authorities.

    Raises:
        CannotConnect: no daemon listens there, or this user may not connect.
        DeadlineExceeded: the deadline passed.
    """
    left = limit.left(time.monotonic())
    try:
        return Link(address, await connect(address, tls, left), limit)
    except OSError as error:  # of TLS, too
        if _ran_out(error):
            raise DeadlineExceeded("the deadline passed before the answer was complete") from None
        raise CannotConnect(_why_not(address, error)) from None


def finish(awaitable: Awaitable[T]) -> T:
    """Return the result of what waits for nothing but a stream that blocks."""
    try:
        next(iter(awaitable.__await__()))
    except StopIteration as ended:
        result: T = ended.value
        return result
    raise AssertionError(f"{awaitable!r} waits for an event loop")


def readable(descriptor: int) -> bool:
    """Return whether a socket has something to read, as which its end counts; without waiting."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def tls_context(given: "ssl.SSLContext | None") -> "ssl.SSLContext":
    """Return the context of a connection over TLS. The import takes 8 ms, so that only https pays for it."""
    import ssl

    return ssl.create_default_context() if given is None else given


def _ran_out(error: OSError) -> bool:
    """Return whether the time given to a stream ran out; the kernel's own timeouts have a number."""
    return isinstance(error, TimeoutError) and error.errno is None


def _why_not(address: DaemonAddress, error: OSError) -> str:
    """Return the reason why a connection failed, and what to do."""
    if address.socket is not None and isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return f"no daemon at `{address}`; start one with `tsctl start`"
    if isinstance(error, PermissionError):
        return f"not allowed to use `{address}`: the daemon belongs to another user"
    return f"cannot connect to `{address}`: {error.strerror or error}"
