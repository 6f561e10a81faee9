"""The head of the request that is being parsed: its lines, within the limits."""

from tsctl.daemon.core.errors import MethodNotAllowed
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.parsing.headers import LENGTHS, NAMES, InterpretedHeaders
from tsctl.daemon.http.parsing.refusals import RequestRejected, head_too_large
from tsctl.daemon.http.parsing.target import check_target


class Head:
    """The parsed part of a head. One object serves all requests of a connection.

    Args:
        limits: heads beyond these are rejected.

    Attributes:
        method: `-` until the headers are complete.
        url: the target, as bytes; the received part of it.
        version: of HTTP, once the headers are complete.
        headers: names and values as sent, in order.
        said: the headers that the daemon interprets, once they are complete.
    """

    def __init__(self, limits: HttpLimits) -> None:
        self.method = "-"
        self.url = b""
        self.version = ""
        self.headers: list[tuple[str, str]] = []
        self.said = InterpretedHeaders()
        self._limits = limits
        self._ours: list[tuple[bytes, str]] = []
        self._size = 0

    def begin(self) -> None:
        """Note that another request has begun."""
        self.method = "-"
        self.url = b""
        self.headers = []
        self.said.id = ""
        self._ours = []
        self._size = 0

    def add_url(self, url: bytes) -> None:
        """Add a part of the target.

        Raises:
            RequestRejected: the head is too large.
        """
        self.url = self.url + url if self.url else url
        self.count(len(url))

    def add_header(self, name: bytes, value: bytes) -> None:
        """Add a header.

        Raises:
            RequestRejected: the head is too large, or has too many lines.
        """
        self.count(len(name) + len(value) + 4)
        text = value.rstrip(b" \t").decode("latin-1")
        headers = self.headers
        headers.append((name.decode("latin-1"), text))
        if len(name) in LENGTHS and (ours := name.lower()) in NAMES:
            self._ours.append((ours, text))
        if len(headers) > self._limits.max_headers:
            raise head_too_large(self._limits)

    def count(self, size: int) -> None:
        """Count bytes of the head, or of trailers.

        Raises:
            RequestRejected: the head is too large.
        """
        self._size += size
        if self._size > self._limits.max_head:
            raise head_too_large(self._limits)

    def check(self, method: bytes, version: str) -> None:
        """Check the first line, of which the parser accepts more than the daemon.

        Raises:
            RequestRejected: the version is not supported (505).
            MethodNotAllowed: the method is CONNECT.
            BadRequest: the target is none.
        """
        if version != "1.1" and version != "1.0":
            raise RequestRejected(505, "BadRequestException", f"HTTP/{version} is not supported; use HTTP/1.1.")
        if method == b"CONNECT":
            raise MethodNotAllowed
        if self.url[:1] != b"/" or b"#" in self.url:
            check_target(self.url.decode("latin-1"), method)
        self.version = version

    def read(self) -> InterpretedHeaders:
        """Interpret the complete headers.

        Raises:
            BadRequest: as `InterpretedHeaders.read`.
            RequestRejected: as `InterpretedHeaders.read`.
            Forbidden: a web page may not ask this host.
        """
        said = self.said
        said.read(self._ours, self.version)
        if said.origin is not None:
            pages = self._limits.pages
            if pages is not None:
                pages(said.origin, said.host)
        return said

    def without_upgrade(self) -> bytes:
        """Return the complete head without its offer of an upgrade."""
        start = f"{self.method} {self.url.decode('latin-1')} HTTP/{self.version}"
        headers = [f"{name}: {value}" for name, value in self.headers if name.lower() != "upgrade"]
        return "\r\n".join((start, *headers, "\r\n")).encode("latin-1")
