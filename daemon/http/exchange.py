"""A request and the answer owed for it; and the answers that one connection owes.

An application answers an exchange once: whole, by `respond`, or in pieces, by `start`, `send` and `finish`. The answer
may come at any later time; answers leave in the order of the requests.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol, cast

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.errors import DaemonError
from tsctl.daemon.core.job import Caller, Flow
from tsctl.daemon.http.bounds.sending import OVERHEAD, PIECE, SendBudget
from tsctl.daemon.http.messages import Framing, Request, Response, error_response, framing_of

JOINED_BODY: Final = 16 * 1024  # bytes; a smaller answer is joined with its head, a larger one is not copied


class ExchangeOwner(Protocol):
    """The connection, as its exchanges see it."""

    caller: Caller
    headers: tuple[tuple[str, str], ...]  # of every answer, besides its own

    def flush(self, exchange: "Exchange") -> None:
        """Write as much as possible, after this exchange's buffer grew."""

    def answered(self, exchange: "Exchange") -> None:
        """Note that an answer is complete, though perhaps not yet written."""

    def break_off(self, exchange: "Exchange", error: DaemonError) -> None:
        """Abort an answer that has begun: send the error if nothing was written yet, else close the connection."""


class Exchange:
    """A request, and the answer owed for it.

    Attributes:
        close: the connection closes after this answer.
        on_leave: called when the client closes its side (argument False) or the connection is lost
            (True); returns whether an answer is still on its way.
        buffer, size: the unwritten data, and its size in bytes, including the overhead of pieces.
        counted: how many of these bytes count as held (bounds/sending.py); maintained by the connection.
        written: a part of the answer was written.
        flow: the source of the answer's pieces; None for a whole answer.
    """

    __slots__ = (
        "_chunked", "_connection", "buffer", "close", "counted", "done", "flow", "on_leave", "request", "size",
        "status", "written",
    )  # fmt: skip

    def __init__(self, connection: ExchangeOwner, request: Request) -> None:
        self._connection = connection
        self.request = request
        self.on_leave: Callable[[bool], bool] | None = None
        self.buffer: list[bytes | memoryview] = []
        self.size = self.counted = 0
        self.written = False
        self.flow: Flow | None = None
        self.done = False
        self.close = not request.keep_alive
        self.status = 0
        self._chunked = False

    def __repr__(self) -> str:
        return f"<Exchange {self.request.method} {self.request.target} {self.status or 'open'}>"

    @property
    def caller(self) -> Caller:
        """The connection, as the models know it."""
        return self._connection.caller

    @property
    def started(self) -> bool:
        """Whether an answer has begun, or is complete."""
        return bool(self.status)

    def respond(self, response: Response) -> None:
        """Answer, once. After the client has left, do nothing."""
        if self.done:
            return
        self.status = response.status
        framing, body = framing_of(self.request, response.status, whole=True), response.body
        head = self._head(response, framing)
        if not body or framing is not Framing.SIZED:
            self.buffer.append(head)
            self.size += len(head)
        else:
            if len(body) <= JOINED_BODY:
                self.buffer.append(head + body)
            else:
                self.buffer += (head, body)
            self.size += len(head) + len(body)
        self._end()

    def fail(self, error: DaemonError) -> None:
        """Answer with an error; an answer that has begun is visibly cut off."""
        if self.done:
            return
        if self.status:
            self._connection.break_off(self, error)
        else:
            self.respond(error_response(error, self.request.target))

    def start(self, response: Response, *, at_once: bool = True) -> None:
        """Begin an answer in pieces; `response.body` is not sent.

        The pieces are sent as chunks; an HTTP/1.0 client reads until the connection closes. An answer without a body is
        complete with its head.

        Args:
            at_once: write the head now; False if the first piece follows, with which it is written.
        """
        if self.done:
            return
        self.status = response.status
        framing = framing_of(self.request, response.status, whole=False)
        self._chunked = framing is Framing.CHUNKED
        self.close = self.close or framing is Framing.UNTIL_CLOSE
        head = self._head(response, framing)
        self.buffer.append(head)
        self.size += len(head)
        if framing is Framing.NOTHING:
            self._end()
        elif at_once:
            self._connection.flush(self)

    def _head(self, response: Response, framing: Framing) -> bytes:
        headers = self._connection.headers
        if headers:
            response.headers = (*response.headers, *headers)
        return response.head(self.request.id, keep_alive=not self.close, framing=framing)

    def send(self, chunk: bytes, flow: Flow | None = None) -> None:
        """Send a piece of an answer that was begun by `start`.

        Args:
            flow: the source of the pieces; notified when they have been written.
        """
        if self.done:
            return
        if flow is not None:
            flow.wanted = True
            self.flow = flow
        if chunk:
            self._add(chunk)
            self._connection.flush(self)

    def finish(self) -> None:
        """End an answer that was begun by `start`."""
        if not self.done:
            if self._chunked:
                self.buffer.append(b"0\r\n\r\n")
                self.size += 5
            self._end()

    def replace(self, error: DaemonError) -> None:
        """Replace the answer, of which nothing was written, by an error. Nothing is flushed."""
        response = error_response(error, self.request.target)
        self.status, self.done = response.status, True
        framing = framing_of(self.request, response.status, whole=True)
        head = self._head(response, framing)
        self.buffer = [head + response.body if framing is Framing.SIZED else head]
        self.size = len(self.buffer[0])

    def let_go(self) -> None:
        """Notify the answer's producers that the client has left."""
        on_leave, self.on_leave = self.on_leave, None
        if on_leave is not None:
            on_leave(True)
        if self.flow is not None:
            self.flow.refuse()
            self.flow = None

    def take_all(self) -> list[bytes | memoryview]:
        taken, self.buffer, self.size = self.buffer, [], 0
        return taken

    def take_bytes(self, most: int) -> list[bytes | memoryview]:
        """Remove and return the first unwritten bytes, at most `most`.

        A large piece counts until its last byte is out: until then all of it is in memory.
        """
        count = taken = 0
        for data in self.buffer:
            if taken + len(data) > most:
                break
            taken += len(data)
            self.size -= len(data) if isinstance(data, bytes) else len(cast(bytes, data.obj))
            count += 1
        out = self.buffer[:count]
        del self.buffer[:count]
        if not out and self.buffer:
            first = memoryview(self.buffer[0])
            out.append(first[:most])
            self.buffer[0] = first[most:]
        elif not self.buffer:
            self.size = 0
        return out

    def _add(self, chunk: bytes) -> None:
        if not self._chunked:
            self.buffer.append(chunk)
        elif len(chunk) <= JOINED_BODY:
            self.buffer.append(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        else:
            self.buffer += (b"%x\r\n" % len(chunk), chunk, b"\r\n")
        self.size += len(chunk) + OVERHEAD

    def _end(self) -> None:
        self.done = True
        self.on_leave = None
        self._connection.flush(self)
        self._connection.answered(self)


def write_all(transport: asyncio.Transport, pieces: list[bytes | memoryview]) -> None:
    """Write these pieces, small ones joined into one."""
    if sum(map(len, pieces)) <= JOINED_BODY:
        transport.write(b"".join(pieces))
    else:
        transport.writelines(pieces)


class OutgoingOwner(Protocol):
    """The connection, as its outgoing side sees it."""

    def enter_stuck(self) -> None:
        """Restart the timeout within which the client has to read something."""


class Outgoing:
    """The outgoing side of a connection: the answers that it owes, and their unwritten bytes.

    Bytes that the client does not read stay here, where they are counted (bounds/sending.py): the transport gets an
    answer piece by piece, and nothing while writing is paused. The same holds over TLS, where the transport does not
    report its buffer.

    Attributes:
        transport: set when the connection is made.
        exchanges: those whose answers are not complete or not written yet; the oldest first.
        paused: the client does not read, and nothing is written.
        unsent: bytes in the transport when writing was last paused.
        held: bytes that count in `sending`.
    """

    transport: asyncio.Transport

    def __init__(self, owner: OutgoingOwner, sending: SendBudget, clock: Clock) -> None:
        self.exchanges: deque[Exchange] = deque()
        self.paused = False
        self.unsent = 0
        self.held = 0
        self._owner = owner
        self._sending = sending
        self._clock = clock

    def write(self, exchange: Exchange) -> bool:
        """Write the answers that are ready, as far as the client reads them.

        Args:
            exchange: the one whose buffer grew.

        Returns:
            Whether the last answer of the connection is out.
        """
        exchanges = self.exchanges
        if self.paused or exchange.size > PIECE or exchange is not exchanges[0]:
            self._hold(exchange)
        while exchanges and not self.paused:
            first = exchanges[0]
            if first.buffer:
                self._write(first)
                if first.buffer:
                    break
            if not first.done:
                break
            exchanges.popleft()
            if first.close:
                return True
        return False

    def break_off(self, exchange: Exchange, error: DaemonError) -> bool:
        """Abort an answer that has begun. Return whether the error replaced it, as nothing was written yet."""
        if exchange.written:
            self.transport.abort()  # the answers after this one are lost, too
            return False
        exchange.let_go()
        exchange.replace(error)
        return True

    def cut(self, kept: int) -> None:
        """Drop the exchanges after the first `kept`: their answers will not be sent."""
        while len(self.exchanges) > kept:
            exchange = self.exchanges.pop()
            exchange.done = True
            if exchange.counted:
                self._sending.drop(self, exchange.counted)
                exchange.counted = 0
            exchange.buffer = []
            exchange.let_go()

    # The interface towards the budget (bounds/sending.py).

    def has_taken(self) -> bool:
        if self.paused and self.transport.get_write_buffer_size() >= self.unsent:
            return False
        if self.paused:
            self._owner.enter_stuck()
        return True

    def give_up(self) -> None:
        self.cut(0)
        self.transport.abort()

    def _hold(self, exchange: Exchange) -> None:
        """Count the bytes that have to wait. Without room, answer with an error, or cut off one already begun."""
        sending, now, more = self._sending, self._clock.now(), exchange.size - exchange.counted
        if more < 0:
            sending.drop(self, -more)
        elif more and not sending.hold(self, more, now):
            sending.drop(self, exchange.counted)
            if not self.break_off(exchange, sending.refuse()):
                exchange.take_all()
            else:
                sending.count_bytes(self, exchange.size, now)
        exchange.counted = exchange.size

    def _write(self, exchange: Exchange) -> None:
        exchange.written = True
        if exchange.size <= PIECE:  # nearly always, without further calls
            pieces, exchange.buffer, exchange.size = exchange.buffer, [], 0
            if len(pieces) == 1:
                self.transport.write(pieces[0])
            else:
                write_all(self.transport, pieces)
        else:
            while exchange.buffer and not self.paused:
                write_all(self.transport, exchange.take_bytes(PIECE))
        if exchange.counted:
            self._sending.taken(self, exchange.counted - exchange.size, self._clock.now())
            exchange.counted = exchange.size
        if exchange.flow is not None and not exchange.buffer:
            exchange.flow.drained()
