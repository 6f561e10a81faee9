"""Bytes to requests: llhttp (httptools) parses, this puts the pieces together and keeps the limits.

A client that keeps its connection mostly sends the same head again: that is compared, not parsed (repeated.py).
A large body whose length is known is not parsed: there is nothing in it to be found. What came with its
headers is copied into the arena, and the rest is received there (`space`, `filled`).
"""

from collections.abc import Callable

import httptools
import msgspec

from daemon.arena import SHARED_FROM, Payload, Storage, Stored, gather
from daemon.errors import BadRequest, DaemonError, MethodNotAllowed
from daemon.http.limits import HttpLimits
from daemon.http.messages import Request, new_request_id
from daemon.http.repeated import LONGEST, Repeated, know
from daemon.http.target import check_host, check_target

_OURS = frozenset((
    b"host", b"content-length", b"transfer-encoding", b"expect", b"x-request-id", b"x-request-deadline-ms",
    b"x-request-priority",
))  # fmt: skip
_OURS_LENGTHS = frozenset(map(len, _OURS))  # so that most names need not be made lower case
LONGEST_ID = 128  # characters of an `x-request-id` that is taken from the client
PATIENCE = 8  # heads, none like the one before, after which none is remembered: each differs, say by a request id


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
        storage: where large bodies are received; None for nowhere in particular.
        on_head: called with the head of each request that has a body, before that is read; what it raises
            refuses the request. None for nobody to ask.

    Attributes:
        begun: a request has begun and is not complete.
        in_body: its headers are complete.
        body_bytes, body_began: what has come of its body, and since when.
        budget, priority: headers of it, see Request.
        stored: where its body is received, if that is large.
        closed: nothing more is read.
    """

    def __init__(
        self,
        limits: HttpLimits,
        now: Callable[[], float],
        on_request: Callable[[Request], None],
        on_expect: Callable[[], None],
        storage: Storage | None = None,
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
        self._storage = storage
        self.stored: Stored | None = None
        self._on_head = on_head
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._ours: list[tuple[bytes, str]] = []  # those that say something to us, with their names in lower case
        self._head_bytes = 0
        self._told = False  # the parser has told something of what it was fed
        self._untold_bytes = 0  # what it keeps to itself: a header, a trailer or a chunk's size without an end
        self._upgrade = False
        self._expects = False
        self._body: bytes | bytearray = b""
        self._host = ""  # the last that was found to be one
        self._id = ""  # the client's name for the request; empty if it gave none that can be used
        self._known: Repeated | None = None  # the head of the request before
        self._again: tuple[Repeated, bytes] | None = None  # that of the request that has begun, and its length
        self._beginning: tuple[bytes, int] | None = None  # of a request whose body is stored, and what came of that
        self._unlike = 0 if on_head is None else PATIENCE  # heads since one was like the one before
        self._plain: Request | None = None  # the request that was just parsed, if its head may be known again

    def space(self) -> memoryview | None:
        """Where the next bytes belong, and no others: the rest of a large body. None if they are to be fed."""
        if self.stored is None or self.closed:
            return None
        return self.stored.view[self.body_bytes :]

    def filled(self, count: int) -> None:
        """So many bytes were put where `space` said."""
        self.body_bytes += count
        stored = self.stored
        if stored is None or self.body_bytes < len(stored):
            return
        if self._again is not None:
            (known, digits), self._again = self._again, None
            self.begun, self.stored = False, None
            self._on_request(self._repeat(known, digits, stored, self.body_began))
        else:
            parser = self._parser
            self._parser = httptools.HttpRequestParser(self)  # the old one waits for a body that it will never see
            self._complete(parser)

    def leave(self) -> None:
        """Nothing more comes."""
        self.closed = True
        self.stored = None
        self._body = b""

    def feed(self, data: bytes | memoryview) -> None:
        """Take what has arrived.

        Raises:
            DaemonError: what is being received is refused; nothing more can be read.
        """
        fresh = not self.begun
        if fresh and self._known is not None and self._is_known(self._known, bytes(data)):
            return
        self._told = False
        self._plain = None
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
            self._decline_upgrade(bytes(data[head_end:]))
        elif self.begun and not self._told:
            self._untold_bytes += len(data)
            if self._untold_bytes > self._limits.max_head:
                raise self._head_too_large()
        elif fresh and self.stored is not None and self._unlike < PATIENCE:
            head = bytes(data[:LONGEST])
            self._beginning = head, self.body_bytes - (len(data) - len(head))
        elif fresh and self._unlike < PATIENCE:
            self._remember(bytes(data))

    def _remember(self, data: bytes) -> None:
        """Know the head of the request that was just parsed again, if `data` was all of it."""
        if self._plain is not None:
            self._known = know(data, self._plain)
            self._unlike += 1

    def _is_known(self, known: Repeated, data: bytes) -> bool:
        """Whether this is one whole request with that head, which has been told then, or begins one."""
        found = None if self.closed else known.beginning_of(data)
        if found is None or not self._take(known, *found):
            self._known = None
            return False
        self._unlike = 0
        return True

    def _take(self, known: Repeated, body: bytes, digits: bytes) -> bool:
        """Take a request whose head is known, whole or with its body to come; says whether that could be done."""
        length = int(digits)
        if length > self._limits.max_body:
            return False
        if len(body) == length and length < SHARED_FROM:
            self._on_request(self._repeat(known, digits, body, self._now()))
            return True
        if len(body) >= length or length < SHARED_FROM or self._storage is None:
            return False
        self.stored = self._storage.take(length)
        if self.stored is None:
            return False
        self.stored.view[: len(body)] = body
        self.begun = self.in_body = self._told = True
        self.body_began, self.body_bytes = self._now(), len(body)
        self.budget, self.priority = known.request.budget, known.request.priority
        self._again = known, digits
        return True

    def _repeat(self, known: Repeated, digits: bytes, body: Payload, began: float) -> Request:
        before = known.request
        return Request(
            before.method, before.target, known.headers_of(digits), body, before.http_1_0, before.keep_alive,
            began, self._now(), before.budget, before.priority, "", before.id or new_request_id(), before.kind,
        )  # fmt: skip

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
        if self._again is not None:
            return self._repeat(*self._again, b"", self.body_began)
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
        self._ours = []
        self._head_bytes = 0
        self._body = b""
        self.stored = None
        self._id = ""
        self.budget = self.priority = None

    def on_url(self, url: bytes) -> None:
        self._url = self._url + url if self._url else url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        # `_tell` and `_count_head` without their calls: this runs for each header (0.5 µs less)
        self._told, self._untold_bytes = True, 0
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._limits.max_head:
            raise self._head_too_large()
        if self.in_body:
            return  # a trailer: nobody here has a use for it, and it must not pass for a header
        text = value.rstrip(b" \t").decode("latin-1")
        headers = self._headers
        headers.append((name.decode("latin-1"), text))
        if len(name) in _OURS_LENGTHS and (ours := name.lower()) in _OURS:
            self._ours.append((ours, text))
        if len(headers) > self._limits.max_headers:
            raise self._head_too_large()

    def on_headers_complete(self) -> None:
        self.in_body = True
        self.body_began = self._now()
        version = self._parser.get_http_version()
        if version != "1.1" and version != "1.0":
            raise Refused(505, "BadRequestException", f"HTTP/{version} is not spoken here: use HTTP/1.1.")
        if self._parser.get_method() == b"CONNECT":
            raise MethodNotAllowed
        if self._url[:1] != b"/" or b"#" in self._url:
            check_target(self._url.decode("latin-1"), self._parser.get_method())
        if self._parser.should_upgrade():
            return  # to be read again
        hosts = length = 0
        expects = chunked = False
        for name, value in self._ours:
            match name:
                case b"host":
                    hosts += 1
                    if value != self._host:  # nearly always the one of the request before
                        self._check_host(value)
                case b"content-length":
                    length = int(value) if value.isdigit() else 0
                case b"transfer-encoding" if version == "1.0":
                    raise BadRequest("HTTP/1.0 has no transfer encodings.")
                case b"transfer-encoding" if value.lower() != "chunked":
                    raise Refused(501, "BadRequestException", f"The transfer encoding `{value}` is not understood.")
                case b"transfer-encoding":
                    chunked = True
                case b"expect" if value.lower() != "100-continue":
                    raise Refused(417, "BadRequestException", f"The expectation `{value}` cannot be met.")
                case b"expect":
                    expects = True
                case b"x-request-id":
                    self._id = value if len(value) <= LONGEST_ID and value.isascii() and value.isprintable() else ""
                case b"x-request-deadline-ms":
                    self.budget = value
                case b"x-request-priority":
                    self.priority = value
        if hosts > 1 or (not hosts and version == "1.1"):
            raise BadRequest("A request needs one Host header.")
        if length > self._limits.max_body:
            raise self._body_too_large(f"{length} bytes")
        if self._on_head is not None and (length or chunked):
            self._on_head(self._head())
        if length >= SHARED_FROM and self._storage is not None:
            self.stored = self._storage.take(length)
        self._expects = expects
        if expects and version != "1.0":
            self._on_expect()

    def _check_host(self, host: str) -> None:
        check_host(host)
        self._host = host

    def on_body(self, body: bytes) -> None:
        self._tell()
        self.body_bytes += len(body)
        if self.body_bytes > self._limits.max_body:
            raise self._body_too_large(f"{self.body_bytes} bytes or more")
        if self.stored is not None:
            self.stored.view[self.body_bytes - len(body) : self.body_bytes] = body
        elif not self._body:
            self._body = body  # most come in one piece
        else:
            if isinstance(self._body, bytes):
                self._body = bytearray(self._body)
            self._body += body  # not a list: chunks of two bytes would cost twenty times what they hold

    def on_message_complete(self) -> None:
        if not self._parser.should_upgrade():
            self._complete(self._parser)

    def _complete(self, parser: httptools.HttpRequestParser) -> None:
        """The request is complete; its parser knows the first line."""
        self.begun = False
        body: Payload
        if self.stored is not None:
            body, self.stored = self.stored, None
        else:
            body = self._body if isinstance(self._body, bytes) else gather(self._body, self._storage)
        named = self._id
        self._body, self._id = b"", ""
        request = Request(
            parser.get_method().decode("latin-1"),
            self._url.decode("latin-1"),
            self._headers,
            body,
            http_1_0=parser.get_http_version() == "1.0",
            # A client that offers to upgrade gets its answer in HTTP/1.1, and is done.
            keep_alive=parser.should_keep_alive() and not self._upgrade,
            began=self.body_began,
            received=self._now(),
            budget=self.budget,
            priority=self.priority,
            id=named or new_request_id(),
        )
        if self._unlike < PATIENCE and not (self._upgrade or self._expects):
            kind = request.content_type
            self._plain = msgspec.structs.replace(request, body=b"", id=named, kind=kind)
            if self._beginning is not None:
                data, came = self._beginning
                self._known = know(data, self._plain, came)
                self._unlike += 1
        self._beginning = None
        self._on_request(request)

    # Refusals.

    def _tell(self) -> None:
        self._told = True
        self._untold_bytes = 0

    def _count_head(self, count: int) -> None:
        self._told = True
        self._untold_bytes = 0
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
