"""A client's connection, byte for byte: so that nothing that comes goes unseen, and it can leave at any moment."""

import contextlib
import socket
import struct

from tests.lab.harness.verdict import Asked, Broken, Told

PATIENCE = 120.0  # seconds for anything to come: much more than it takes, on a busy machine too
_ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


class Unanswered(Exception):
    """The connection ended, or nothing came; the sentence says which."""


class Peer:
    """One connection to the inference address.

    Args:
        address: HOST:PORT.

    Raises:
        Unanswered: it cannot connect.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            raise Unanswered(f"it cannot connect: {error}") from None
        self._read = bytearray()

    def ask(self, model: str, asked: Asked, *, keep: bool = True, share: float = 1.0) -> None:
        """Send a request, or the head and this share of its body.

        Raises:
            Unanswered: the connection has ended.
            Broken: something came that was not asked for.
        """
        body = asked.body
        head = (
            f"POST /predictions/{model} HTTP/1.1\r\nHost: chaos\r\nContent-Type: application/octet-stream\r\n"
            f"x-request-id: {asked.id}\r\nContent-Length: {len(body)}\r\n"
        )
        head += f"x-request-deadline-ms: {asked.deadline}\r\n" if asked.deadline else ""
        head += f"X-Model-Version: {asked.version}.0\r\n" if asked.version else ""
        head += "\r\n" if keep else "Connection: close\r\n\r\n"
        self.send(asked.id, head.encode() + body[: int(share * len(body))])

    def send(self, named: str, message: bytes) -> None:
        """Send a request of this name, or the beginning of one. Raise as `ask`."""
        self._expect_silence(named)
        try:
            self._socket.sendall(message)
        except OSError as error:
            raise Unanswered(f"{named} could not be sent: {error}") from None

    def answer(self) -> Told:
        """Read an answer to its end, or to the end of the connection.

        Raises:
            Unanswered: no head came.
            Broken: more came than one answer.
        """
        while (end := self._read.find(b"\r\n\r\n")) < 0:
            self._more("before the answer's head was there")
        first, *lines = bytes(self._read[:end]).decode("latin-1").split("\r\n")
        del self._read[: end + 4]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        body, whole = self._body(headers)
        if self._read:
            raise Broken(f"after the answer to {headers.get('x-request-id')} came {bytes(self._read[:80])!r}")
        return Told(int(first.split()[1]), headers, body, whole)

    def read_some(self) -> None:
        """Read what there is, at least a byte. Raises: Unanswered."""
        self._more("before a byte was there")

    def close(self, *, abort: bool = False) -> None:
        """Leave; `abort` sends a reset."""
        if abort:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
        self._socket.close()

    def _body(self, headers: dict[str, str]) -> tuple[bytes, bool]:
        parts: list[bytes] = []
        try:
            if headers.get("transfer-encoding") != "chunked":
                return self._take(int(headers["content-length"])), True
            while size := int(self._line(), 16):
                parts.append(self._take(size))
                self._line()
            self._line()
        except Unanswered:
            parts.append(bytes(self._read))
            self._read.clear()
            return b"".join(parts), False
        return b"".join(parts), True

    def _line(self) -> bytes:
        while (end := self._read.find(b"\r\n")) < 0:
            self._more("in a line")
        line = bytes(self._read[:end])
        del self._read[: end + 2]
        return line

    def _take(self, count: int) -> bytes:
        while len(self._read) < count:
            self._more("in a body")
        taken = bytes(self._read[:count])
        del self._read[:count]
        return taken

    def _more(self, where: str) -> None:
        try:
            received = self._socket.recv(1 << 18)
        except TimeoutError:
            raise Unanswered(f"nothing came for {PATIENCE:g} s, {where}") from None
        except OSError as error:
            raise Unanswered(f"{error.strerror}, {where}") from None
        if not received:
            raise Unanswered(f"the connection was closed, {where}")
        self._read += received

    def _expect_silence(self, named: str) -> None:
        self._socket.setblocking(False)
        try:
            came = self._socket.recv(80)
        except BlockingIOError:
            return
        except OSError as error:
            raise Unanswered(f"the connection ended before {named}: {error}") from None
        finally:
            self._socket.settimeout(PATIENCE)
        if came:
            raise Broken(f"before {named} was sent came {came!r}")
        raise Unanswered(f"the connection was closed before {named}, and nobody had said so")
