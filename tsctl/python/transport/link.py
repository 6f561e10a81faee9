"""One keep-alive connection of the blocking client: a socket, with a deadline for the whole exchange.

A socket's own timeout bounds each system call, so a peer that sends a byte now and then would be waited for without
end. Here each call gets the time that is left. Not `http.client`: it takes headers that break off for complete ones.
"""

import contextlib
import select
import socket
import time
from collections.abc import Generator
from typing import TYPE_CHECKING

from tsctl.python.answers import ReceivedAnswer
from tsctl.python.calls import Call, CallTime, request_head
from tsctl.python.errors import CannotConnect, ConnectionLost, DeadlineExceeded
from tsctl.python.transport.address import DaemonAddress
from tsctl.python.transport.reader import AnswerReader

if TYPE_CHECKING:
    import ssl

PIECE = 64 * 1024  # bytes that are read at most at once


class ClientLink:
    """A connection to a daemon; one call after the other.

    Args:
        tls: for https; None verifies the certificate with the system's authorities.

    Raises:
        CannotConnect: no daemon listens there, or this user may not connect.
        DeadlineExceeded: the deadline passed.
    """

    def __init__(self, address: DaemonAddress, tls: "ssl.SSLContext | None", limit: CallTime) -> None:
        self._address = address
        self._answer = AnswerReader()
        self._first = b""
        self._limit = limit
        try:
            self._socket = _connected(address, limit.left(time.monotonic()), tls)
        except OSError as error:
            if isinstance(error, TimeoutError):
                limit.left(time.monotonic())
            raise CannotConnect(why_not(address, error)) from None

    @property
    def open(self) -> bool:
        return self._socket.fileno() >= 0

    @property
    def usable(self) -> bool:
        """Whether another call can be sent: the daemon has neither closed the connection, nor sent more than asked."""
        return not readable(self._socket.fileno())

    def close(self) -> None:
        self._socket.close()

    def send(self, call: Call, limit: CallTime) -> tuple[int, dict[str, str]]:
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
            # A daemon that refuses a large body answers before it has read it, and may close then.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError), self._bounded():
                self._socket.sendall(head + call.body if len(call.body) < PIECE else head)
                if len(call.body) >= PIECE:
                    self._socket.sendall(call.body)
            self._first = b""
            while not self._answer.status:
                self._first = self._more()
        except BaseException:
            self.close()
            raise
        return self._answer.status, self._answer.headers

    def pieces(self) -> Generator[bytes, None, None]:
        """Yield the body as it comes; to the end, or the connection is closed.

        Raises:
            ConnectionLost: the connection broke before the end.
            DeadlineExceeded: the deadline passed.
        """
        try:
            piece = self._first
            while True:
                if piece:
                    yield piece
                if self._answer.whole:
                    break
                piece = self._more()
        finally:
            if not self._answer.reusable:
                self.close()

    def answer(self, call: Call, limit: CallTime) -> ReceivedAnswer:
        """Send a call and return its whole answer; raises as `send` does."""
        status, headers = self.send(call, limit)
        return ReceivedAnswer(status, headers, b"".join(self.pieces()))

    def _more(self) -> bytes:
        with self._bounded():
            try:
                data = self._socket.recv(PIECE)
            except ConnectionError as error:
                raise ConnectionLost(f"the connection to `{self._address}` broke off: {error}") from None
        if data:
            return self._answer.feed(data)
        self._answer.end()
        return b""

    @contextlib.contextmanager
    def _bounded(self) -> Generator[None, None, None]:
        """Bound a system call by the time that is left.

        Raises:
            ConnectionLost: the connection is of no use any more.
            DeadlineExceeded: the deadline passed.
        """
        self._socket.settimeout(self._limit.left(time.monotonic()))
        try:
            yield
        except (BrokenPipeError, ConnectionResetError):
            raise
        except TimeoutError:
            raise DeadlineExceeded("the deadline passed before the answer was complete") from None
        except OSError as error:
            raise ConnectionLost(f"the connection to `{self._address}` broke off: {error}") from None


def readable(descriptor: int) -> bool:
    """Return whether a socket has something to read, as which its end counts; without waiting."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


def why_not(address: DaemonAddress, error: OSError) -> str:
    """Return the reason why a connection failed, and what to do."""
    if address.socket is not None and isinstance(error, (FileNotFoundError, ConnectionRefusedError)):
        return f"no daemon at `{address}`; start one with `tsctl start`"
    if isinstance(error, PermissionError):
        return f"not allowed to use `{address}`: the daemon belongs to another user"
    return f"cannot connect to `{address}`: {error.strerror or error}"


def tls_context(given: "ssl.SSLContext | None") -> "ssl.SSLContext":
    """Return the context of a connection over TLS. The import takes 8 ms, so that only https pays for it."""
    import ssl

    return ssl.create_default_context() if given is None else given


def _connected(address: DaemonAddress, timeout: float | None, tls: "ssl.SSLContext | None") -> socket.socket:
    if address.socket is not None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout)
            connection.connect(str(address.socket))
        except BaseException:
            connection.close()
            raise
        return connection
    connection = socket.create_connection((address.host, address.port), timeout)
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return tls_context(tls).wrap_socket(connection, server_hostname=address.host) if address.tls else connection
    except BaseException:
        connection.close()
        raise
