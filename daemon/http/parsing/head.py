"""The head of a request: its lines, within the limits; the headers that the daemon interprets; heads known again."""

import re

from tsctl.daemon.core.errors import BadRequest, MethodNotAllowed
from tsctl.daemon.http.limits import HttpLimits, RequestRejected, head_too_large
from tsctl.daemon.http.messages import Request, new_request_id

# RFC 3986, section 3.2.2: a name, an address, or an IPv6 address in brackets; then a port, which may be empty.
_AUTHORITY = r"(?:\[[0-9A-Za-z:.%_~\-]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?"
_HOST = re.compile(_AUTHORITY)
_ABSOLUTE = re.compile(rf"https?://(?![:/?]|$){_AUTHORITY}(?:[/?].*)?", re.IGNORECASE)


def check_host(host: str) -> None:
    """Check that a Host header names a host.

    Raises:
        BadRequest: the value is no host.
    """
    if not _HOST.fullmatch(host):
        raise BadRequest("Invalid Host header; expected HOST or HOST:PORT.")


def check_target(target: str, method: bytes) -> None:
    """Check that a request target is a path or an address (RFC 9112, section 3.2).

    Raises:
        BadRequest: the target is neither.
    """
    for_all = target == "*" and method == b"OPTIONS"
    if "#" in target or not (for_all or _ABSOLUTE.fullmatch(target)):
        raise BadRequest("Invalid request target; expected a path or an http address.")


NAMES = frozenset((
    b"host", b"content-length", b"transfer-encoding", b"expect", b"x-request-id", b"x-request-deadline-ms",
    b"x-request-priority", b"x-tsctl-timing", b"x-model-version", b"origin", b"content-encoding",
))  # fmt: skip
LENGTHS = frozenset(map(len, NAMES))  # so that most names need not be made lower case
_DIGITS = 20  # of the largest number that the parser takes
LONGEST_ID = 128  # characters of an `x-request-id` that is accepted from the client


class InterpretedHeaders:
    """The interpreted headers of one request.

    Attributes:
        length: bytes of the body; -1 if no header gives the length.
        chunked: the body comes in chunks.
        expects: the client waits for `100 Continue`; never in HTTP/1.0.
        id: the client's name for the request; empty if there is none, or none that can be used.
        origin: of the web page that asks; None without one.
        host: that such a page asks; empty if none is named, in HTTP/1.0.
        budget, priority, timed, model_version, coding: see Request; the codings of repeated headers are joined.
    """

    def __init__(self) -> None:
        self.length = -1
        self.chunked = self.expects = False
        self.id = ""
        self.budget: str | None = None
        self.priority: str | None = None
        self.timed = False
        self.model_version: str | None = None
        self.coding: str | None = None
        self.origin: str | None = None
        self.host = ""
        self._host = ""  # the last valid host: nearly always that of the request before

    def read(self, headers: list[tuple[bytes, str]], version: str) -> None:
        """Read the headers of another request.

        Args:
            headers: those whose names are in `NAMES`, with their names in lower case.
            version: of HTTP, `1.1` or `1.0`.

        Raises:
            BadRequest: the Host header is missing (in HTTP/1.1), repeated or invalid.
            BadRequest: HTTP/1.0 comes with a transfer encoding.
            RequestRejected: the transfer encoding (501) or the expectation (417) is not supported.
        """
        hosts, old = 0, version == "1.0"
        self.length = -1
        self.chunked = self.expects = False
        self.id = ""
        self.budget = self.priority = None
        self.timed = False
        self.model_version = self.origin = self.coding = None
        for name, value in headers:
            match name:
                case b"host":
                    hosts += 1
                    if value != self._host:
                        check_host(value)
                        self._host = value
                case b"content-length":
                    # The parser takes any number of zeros before those digits, and `int` raises for thousands.
                    self.length = int(value[-_DIGITS:]) if value.isdigit() else 0
                case b"transfer-encoding" if old:
                    raise BadRequest("HTTP/1.0 has no transfer encodings; send a Content-Length.")
                case b"transfer-encoding" if value.lower() != "chunked":
                    raise RequestRejected(
                        501, "BadRequestException", f"Unsupported transfer encoding `{value}`; expected `chunked`."
                    )
                case b"transfer-encoding":
                    self.chunked = True
                case b"expect" if value.lower() != "100-continue":
                    raise RequestRejected(
                        417, "BadRequestException", f"Unsupported expectation `{value}`; expected `100-continue`."
                    )
                case b"expect":
                    self.expects = not old
                case b"x-request-id":
                    self.id = value if len(value) <= LONGEST_ID and value.isascii() and value.isprintable() else ""
                case b"x-request-deadline-ms":
                    self.budget = value
                case b"x-request-priority":
                    self.priority = value
                case b"x-tsctl-timing":
                    self.timed = value == "1"
                case b"x-model-version":
                    self.model_version = value or None
                case b"content-encoding":
                    self.coding = value if self.coding is None else f"{self.coding}, {value}"
                case b"origin":
                    self.origin = value
        if hosts > 1 or (not hosts and not old):
            raise BadRequest(f"The request has {hosts} Host headers; expected one.")
        if self.origin is not None:
            self.host = self._host if hosts else ""


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

    def begin_request(self) -> None:
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


_LENGTH = re.compile(rb"\r\ncontent-length: ([0-9]{1,8})(?=\r\n)", re.IGNORECASE)
_FRAMING = ("content-length", "transfer-encoding")
_LENGTH_DIGITS = 8  # at most: larger bodies do not come in one piece
LONGEST = 2048  # bytes of a head that is worth remembering
PATIENCE = 8  # unlike heads in a row, after which none is remembered: they all differ, say by a request id


class CachedHead:
    """One head that a client sends again and again, and the request that it began.

    Args:
        before: its bytes up to the digits of its content length, or all of them.
        after: those after the digits; empty if it has no content length.
        digits: of the length that `request` had, `0` if it had none.
        request: without its body.
        place: of the content length among the headers of `request`.

    Attributes:
        whole: all of the bytes of this head.
    """

    def __init__(self, before: bytes, after: bytes, digits: bytes, request: Request, place: int) -> None:
        self.before = before
        self.after = after
        self.digits = digits
        self.request = request
        self.place = place
        self.whole = before + digits + after

    def beginning_of(self, data: bytes) -> tuple[bytes, bytes] | None:
        """Return the received body and the digits of its length, if `data` begins with this head; else None."""
        if not self.after:
            return (b"", self.digits) if data == self.before else None
        if data.startswith(self.whole):  # most clients send bodies of one length again and again
            return data[len(self.whole) :], self.digits
        if not data.startswith(self.before):
            return None
        start = len(self.before)
        end = data.find(b"\r", start, start + _LENGTH_DIGITS + 1)
        if end < 0:
            return None  # cut within the digits, or before them
        digits = data[start:end]
        if not (digits.isdigit() and data.startswith(self.after, end)):
            return None
        return data[end + len(self.after) :], digits

    def headers_of(self, digits: bytes) -> list[tuple[str, str]]:
        headers = self.request.headers
        if digits == self.digits:
            return headers
        headers = headers.copy()
        headers[self.place] = headers[self.place][0], digits.decode()
        return headers

    def request_with(self, digits: bytes, body: bytes, began: float, received: float) -> Request:
        before = self.request
        return before.again(self.headers_of(digits), body, before.id or new_request_id(), began, received)


def cached_head_of(head: bytes, request: Request) -> CachedHead | None:
    """Return the remembered head; None if this head cannot be recognised again.

    Args:
        head: the bytes of one head, and no others.
        request: parsed from these bytes, without its body.
    """
    found = _LENGTH.search(head)
    framing = [index for index, (name, _) in enumerate(request.headers) if name.lower() in _FRAMING]
    if found is None:
        return None if framing else CachedHead(head, b"", b"0", request, 0)
    if len(framing) != 1:
        return None
    return CachedHead(head[: found.start(1)], head[found.end(1) :], found[1], request, framing[0])


class HeadCache:
    """The head of a connection's previous request.

    Args:
        compares: false where each head has to be parsed; then none is remembered.

    Attributes:
        known: that head; None if there is none, or the last request's head was another.
    """

    def __init__(self, *, compares: bool) -> None:
        self.known: CachedHead | None = None
        self._unlike = 0 if compares else PATIENCE  # heads since one was like the one before
        self._parsed: bytes | None = None  # the head that is being parsed, if it may be remembered

    def hit(self) -> None:
        """Note that a request began with the known head."""
        self._unlike = 0

    def miss(self) -> None:
        """Forget the known head: a request began with another one, or has to be parsed."""
        self.known = None

    def expect(self, data: bytes, begins: int, ends: int) -> None:
        """Note the head that is parsed next: a part of `data`; one that is cut is not remembered, its end is -1."""
        short = 0 <= ends - begins <= LONGEST and self._unlike < PATIENCE
        self._parsed = data[begins:ends] if short else None

    def give_up(self) -> None:
        """Do not remember the head that is being parsed: its request does not come in one piece."""
        self._parsed = None

    def remember(self, request: Request, named: str, *, repeatable: bool) -> None:
        """Remember the parsed head, if its request came in one piece.

        Args:
            request: with its body, or without.
            named: the id that the client gave it; empty for none.
            repeatable: the same head means the same another time.
        """
        head, self._parsed = self._parsed, None
        if head is not None and repeatable:
            known = request.again(request.headers, b"", named, 0.0, 0.0)
            known.kind = request.content_type
            self.known = cached_head_of(head, known)
            self._unlike += 1
