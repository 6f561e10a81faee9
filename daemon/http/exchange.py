"""A request and the answer owed for it.

An application answers an exchange once: whole, by `respond`, or in pieces, by `start`, `send` and
`finish`. It may do so at any later time; the connection keeps the answers in order.
"""

from collections.abc import Callable
from typing import Protocol

from daemon.errors import DaemonError
from daemon.http.messages import Framing, Request, Response, error_response, framing_of
from daemon.job import Caller

JOINED_BODY = 16 * 1024  # bytes; a smaller answer is one string, a larger one is not copied


class Owner(Protocol):
    """The connection, as its exchanges see it."""

    caller: Caller

    def flush(self) -> None:
        """Write what may be written."""

    def answered(self, exchange: "Exchange") -> None:
        """An answer is complete, though perhaps not yet written."""

    def break_off(self, exchange: "Exchange") -> None:
        """End the connection in the middle of this answer."""


class Exchange:
    """A request, and the answer owed for it.

    Attributes:
        close: the connection closes after this answer.
        on_leave: called when the client closes its side (argument False) or the connection is lost
            (True); returns whether an answer is still on its way.
    """

    __slots__ = ("_chunked", "_connection", "buffer", "close", "done", "on_leave", "request", "status")

    def __init__(self, connection: Owner, request: Request) -> None:
        self._connection = connection
        self.request = request
        self.on_leave: Callable[[bool], bool] | None = None
        self.buffer: list[bytes] = []
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
        """An answer has begun, or is complete."""
        return bool(self.status)

    def respond(self, response: Response) -> None:
        """Answer, once. After the client has left it does nothing."""
        if self.done:
            return
        self.status = response.status
        framing, body = framing_of(self.request, response.status, whole=True), response.body
        head = response.head(self.request.id, keep_alive=not self.close, framing=framing)
        if not body or framing is not Framing.SIZED:
            self.buffer.append(head)
        elif len(body) <= JOINED_BODY:
            self.buffer.append(head + body)
        else:
            self.buffer += (head, body)
        self._end()

    def fail(self, error: DaemonError) -> None:
        """Answer with an error; an answer that has begun is cut off, visibly."""
        if self.done:
            return
        if self.status:
            self._connection.break_off(self)
        else:
            self.respond(error_response(error))

    def start(self, response: Response) -> None:
        """Begin an answer in pieces; `response.body` is not sent.

        The pieces are chunks; an HTTP/1.0 client reads until we close. Where nothing may follow the head, the answer
        is complete with that.
        """
        if self.done:
            return
        self.status = response.status
        framing = framing_of(self.request, response.status, whole=False)
        self._chunked = framing is Framing.CHUNKED
        self.close = self.close or framing is Framing.UNTIL_CLOSE
        self.buffer.append(response.head(self.request.id, keep_alive=not self.close, framing=framing))
        if framing is Framing.NOTHING:
            self._end()
        else:
            self._connection.flush()

    def send(self, chunk: bytes) -> None:
        """Send a piece of an answer that was begun by `start`."""
        if not self.done and chunk:
            self.buffer += (b"%x\r\n" % len(chunk), chunk, b"\r\n") if self._chunked else (chunk,)
            self._connection.flush()

    def finish(self) -> None:
        """End an answer that was begun by `start`."""
        if not self.done:
            if self._chunked:
                self.buffer.append(b"0\r\n\r\n")
            self._end()

    def _end(self) -> None:
        self.done = True
        self.on_leave = None
        self._connection.answered(self)
        self._connection.flush()
