"""Bytes to requests: llhttp (httptools) parses, this puts the pieces together and keeps the limits."""

from collections.abc import Callable

import httptools

from daemon.errors import BadRequest, DaemonError, MethodNotAllowed
from daemon.http.limits import HttpLimits
from daemon.http.messages import Request, new_request_id

LONGEST_ID = 128  # characters of an `x-request-id` that is taken from the client
_NOTED_LENGTHS = frozenset({12, 18, 21})  # of the headers that `_note` knows


class Refused(DaemonError):
    """The request is answered before it is complete."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


class _Closed(Exception):
    """Nothing more is to be parsed: an answer that closes has been given."""


class Receiver:
    """Reads the requests of one connection.

    Args:
        limits: what is refused.
        now: the time, for `Request.received`.
        on_request: called with each complete request.
        on_expect: called when a client waits for `100 Continue` before it sends its body.
        on_head: called with the head of each request that has a body, before that is read; what it raises
            refuses the request. None for nobody to ask.

    Attributes:
        begun: a request has begun and is not complete.
        in_body: its headers are complete.
        body_bytes, body_began: what has come of its body, and since when.
        budget, priority: headers of it, see Request.
        closed: nothing more is read.
    """

    def __init__(
        self,
        limits: HttpLimits,
        now: Callable[[], float],
        on_request: Callable[[Request], None],
        on_expect: Callable[[], None],
        on_head: Callable[[Request], None] | None = None,
    ) -> None:
        self.begun = False
        self.in_body = False
        self.body_bytes = 0
        self.body_began = 0.0
        self.budget: str | None = None
        self.priority: str | None = None
        self.closed = False
        self._limits = limits
        self._now = now
        self._on_request = on_request
        self._on_expect = on_expect
        self._on_head = on_head
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._head_bytes = 0
        self._told = False  # the parser has told something of what it was fed
        self._untold_bytes = 0  # what it keeps to itself: a header, a trailer or a chunk's size without an end
        self._upgrade = False
        self._body: list[bytes] = []
        self._id = ""  # the client's name for the request; empty if it gave none that can be used

    def feed(self, data: bytes) -> None:
        """Take what has arrived.

        Raises:
            DaemonError: what is being received is refused; nothing more can be read.
        """
        self._told = False
        head_end = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            head_end = offer.args[0]
        except httptools.HttpParserError as error:
            if self.closed:
                return
            cause = error.__context__
            if isinstance(cause, httptools.HttpParserError) or cause is None:
                raise BadRequest("Invalid HTTP message.") from None
            raise cause from None
        if head_end is not None:
            self._decline_upgrade(data[head_end:])
        elif self.begun and not self._told:
            self._untold_bytes += len(data)
            if self._untold_bytes > self._limits.max_head:
                raise self._head_too_large()

    def _decline_upgrade(self, rest: bytes) -> None:
        """Read a request again as if it did not offer an upgrade: of one that does, httptools skips the body."""
        self._upgrade = True
        version = self._parser.get_http_version()
        start = f"{self._parser.get_method().decode()} {self._url.decode('latin-1')} HTTP/{version}"
        headers = [f"{name}: {value}" for name, value in self._headers if name.lower() != "upgrade"]
        self._parser = httptools.HttpRequestParser(self)
        self.feed("\r\n".join((start, *headers, "\r\n")).encode("latin-1") + rest)

    def request_so_far(self) -> Request:
        """What is known of the request being received, for the answer that refuses it."""
        method = self._parser.get_method().decode("latin-1") if self.in_body else "-"
        target = self._url.decode("latin-1") or "-"
        request_id = self._id or new_request_id()
        return Request(method, target, [], keep_alive=False, received=self._now(), id=request_id)

    def _head(self) -> Request:
        method, target = self._parser.get_method().decode("latin-1"), self._url.decode("latin-1")
        return Request(method, target, self._headers, received=self._now(), id=self._id)

    # The parser calls these.

    def on_message_begin(self) -> None:
        if self.closed:
            raise _Closed
        self.begun = self._told = True
        self.in_body = False
        self.body_bytes = self._untold_bytes = 0
        self._url = b""
        self._headers = []
        self._head_bytes = 0
        self._body = []
        self._id = ""
        self.budget = self.priority = None

    def on_url(self, url: bytes) -> None:
        self._url += url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_head(len(name) + len(value) + 4)
        if self.in_body:
            return  # a trailer: nobody here has a use for it, and it must not pass for a header
        text = value.rstrip(b" \t").decode("latin-1")
        self._headers.append((name.decode("latin-1"), text))
        if len(name) in _NOTED_LENGTHS:
            self._note(name.lower(), text)
        if len(self._headers) > self._limits.max_headers:
            raise self._head_too_large()

    def _note(self, name: bytes, text: str) -> None:
        if name == b"x-request-id":
            self._id = text if len(text) <= LONGEST_ID and text.isascii() and text.isprintable() else ""
        elif name == b"x-request-deadline-ms":
            self.budget = text
        elif name == b"x-request-priority":
            self.priority = text

    def on_headers_complete(self) -> None:
        self.in_body = True
        self.body_began = self._now()
        version = self._parser.get_http_version()
        if self._parser.get_method() == b"CONNECT":
            raise MethodNotAllowed
        if self._parser.should_upgrade():
            return  # to be read again
        hosts = length = 0
        expects = chunked = False
        for name, value in self._headers:
            match name.lower():
                case "host":
                    hosts += 1
                case "content-length":
                    length = int(value) if value.isdigit() else 0
                case "transfer-encoding" if version == "1.0":
                    raise BadRequest("HTTP/1.0 has no transfer encodings.")
                case "transfer-encoding" if value.lower() != "chunked":
                    raise Refused(501, "BadRequestException", f"The transfer encoding `{value}` is not understood.")
                case "transfer-encoding":
                    chunked = True
                case "expect" if value.lower() != "100-continue":
                    raise Refused(417, "BadRequestException", f"The expectation `{value}` cannot be met.")
                case "expect":
                    expects = True
        if hosts > 1 or (not hosts and version == "1.1"):
            raise BadRequest("A request needs one Host header.")
        if length > self._limits.max_body:
            raise self._body_too_large(f"{length} bytes")
        if self._on_head is not None and (length or chunked):
            self._on_head(self._head())
        if expects and version != "1.0":
            self._on_expect()

    def on_body(self, body: bytes) -> None:
        self._tell()
        self.body_bytes += len(body)
        if self.body_bytes > self._limits.max_body:
            raise self._body_too_large(f"{self.body_bytes} bytes or more")
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._parser.should_upgrade():
            return
        self.begun = False
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        request_id = self._id or new_request_id()
        self._body, self._id = [], ""
        self._on_request(
            Request(
                self._parser.get_method().decode("latin-1"),
                self._url.decode("latin-1"),
                self._headers,
                body,
                http_1_0=self._parser.get_http_version() == "1.0",
                # A client that offers to upgrade gets its answer in HTTP/1.1, and is done.
                keep_alive=self._parser.should_keep_alive() and not self._upgrade,
                began=self.body_began,
                received=self._now(),
                budget=self.budget,
                priority=self.priority,
                id=request_id,
            )
        )

    # Refusals.

    def _tell(self) -> None:
        self._told = True
        self._untold_bytes = 0

    def _count_head(self, count: int) -> None:
        self._tell()
        self._head_bytes += count
        if self._head_bytes > self._limits.max_head:
            raise self._head_too_large()

    def _head_too_large(self) -> Refused:
        message = (
            f"The headers are too large: at most {self._limits.max_head} bytes and {self._limits.max_headers} lines."
        )
        return Refused(431, "BadRequestException", message)

    def _body_too_large(self, size: str) -> Refused:
        message = f"The body has {size}, and the limit is {self._limits.max_body} (max_request_size)."
        return Refused(413, "RequestEntityTooLargeException", message)
