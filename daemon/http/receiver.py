"""Bytes to requests: llhttp (httptools) parses, this puts the pieces together and keeps the limits.

What arrives is cut where requests end (boundaries.py), so that each is parsed for itself: as many as may be told
(`room`); the rest is kept as it came, and parsed when there is room again.

A client that keeps its connection mostly sends the same head again: that is compared, not parsed (repeated.py).
A large body whose length is known is not parsed: there is nothing in it to be found. What came with its
headers is copied into the arena, and the rest is received there (`space`, `filled`).
"""

import sys
from collections.abc import Callable

import httptools
import msgspec

from daemon.arena import SHARED_FROM, Payload, Storage, Stored, Unshared, gather
from daemon.errors import BadRequest, MethodNotAllowed
from daemon.http.boundaries import Boundaries
from daemon.http.limits import HttpLimits
from daemon.http.messages import Request, new_request_id
from daemon.http.ours import LENGTHS, NAMES, Ours
from daemon.http.refusals import Refused, body_too_large, head_too_large
from daemon.http.repeated import LONGEST, Repeated, know
from daemon.http.target import check_target

CHEAP = 64 * 1024  # bytes of a body that are copied for others' sake: 5 µs
PATIENCE = 8  # heads, none like the one before, after which none is remembered: each differs, say by a request id


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
        room: requests that may be told; whoever is told of one says how many more.
        kept: what has arrived beyond those; it is not parsed before `go_on`.
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
        self.room = sys.maxsize
        self.kept = b""
        self._limits = limits
        self._now = now
        self._on_request = on_request
        self._on_expect = on_expect
        self._storage = storage
        self.stored: Stored | Unshared | None = None
        self._on_head = on_head
        self._parser = httptools.HttpRequestParser(self)
        self._boundaries, self._said = Boundaries(), Ours()
        self._length = -1  # of the body, where its head has told it
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._ours: list[tuple[bytes, str]] = []
        self._head_bytes = 0
        self._told = False  # the parser has told something of what it was fed
        self._untold_bytes = 0  # what it keeps to itself: a header, a trailer or a chunk's size without an end
        self._upgrade = False
        self._body: bytes | bytearray = b""
        self._known: Repeated | None = None  # the head of the request before
        self._again: tuple[Repeated, bytes] | None = None  # that of the request that has begun, and its length
        self._raw: bytes | None = None  # that of the request that has begun, if it may be known again
        self._unlike = 0 if on_head is None else PATIENCE  # heads since one was like the one before

    def space(self) -> memoryview | None:
        """Return where the next bytes belong, and no others: the rest of a large body. None if they are to be fed."""
        if self.stored is None or self.closed:
            return None
        space = self.stored.view[self.body_bytes :]
        if not space:  # the rest of its place was given up
            self.stored = Unshared(self._length, self.stored.view)
            space = self.stored.view[self.body_bytes :]
        return space

    def filled(self, count: int) -> None:
        """Take so many bytes that were put where `space` said."""
        self.body_bytes += count
        if self.stored is None or self.body_bytes < self._length:
            return
        if self._again is not None:
            (known, digits), self._again = self._again, None
            self.begun = False
            self._on_request(self._repeat(known, digits, self._whole(), self.body_began))
        else:
            parser = self._parser
            self._parser = httptools.HttpRequestParser(self)  # the old one waits for a body that it will never see
            self._complete(parser)

    def give_up_place(self) -> None:
        """Receive the body elsewhere: at once if little of it has come, else where what has come ends."""
        stored = self.stored
        if isinstance(stored, Stored):
            stored.cut(max(1, self.body_bytes))
            if self.body_bytes <= CHEAP:
                self.stored = Unshared(self._length, stored.view[: self.body_bytes])

    def _whole(self) -> Payload:
        """The large body that is complete."""
        stored, self.stored = self.stored, None
        assert stored is not None and self._storage is not None
        self._storage.arrived(self)
        return stored if isinstance(stored, Stored) else bytes(stored)

    def leave(self) -> None:
        """Nothing more comes."""
        self.closed = True
        if self.stored is not None and self._storage is not None:
            self.stored = None
            self._storage.arrived(self)
        self._body = self.kept = b""

    def feed(self, data: bytes | memoryview) -> None:
        """Take what has arrived.

        Raises:
            DaemonError: what is being received is refused; nothing more can be read.
        """
        if self.begun and self.body_bytes + len(data) <= self._length:
            self._parse(data)  # a part of a body, and nothing else
            return
        data = bytes(data)
        if self.kept or (self.room <= 0 and not self.begun):
            self.kept += data
        elif self.begun or self._known is None or not self._is_known(self._known, data):
            self._take_apart(data)

    def go_on(self) -> None:
        """Take what was kept, as far as there is room for it.

        Raises:
            DaemonError: as `feed`.
        """
        self._take_apart(self.kept)

    def _take_apart(self, data: bytes) -> None:
        """Parse request by request."""
        boundaries, self.kept = self._boundaries, b""
        at = begins = 0  # of the part to come, and of the request that it belongs to
        size = len(data)
        while at < size and not self.closed:
            if not self.begun:
                begins = boundaries.end_of_blank(data, at)
                if begins > at:
                    end = begins
                elif self.room <= 0:
                    self.kept = data[at:]
                    return
                else:
                    end = boundaries.end_of_head(data, at)
                    self._raw = data[at:end] if 0 <= end - at <= LONGEST and self._unlike < PATIENCE else None
                    if end < 0:
                        end = size
            elif self._length >= 0:
                end = min(size, at + self._length - self.body_bytes)
            else:
                end = boundaries.end_of_part(data, at)
            self._parse(data if end - at == size else data[at:end])
            at = end
        if self.begun and self._length < 0:
            boundaries.keep(data, begins)
        else:
            boundaries.forget()
        if self.begun and self.stored is None:
            self._raw = None  # such a request is never known again: it does not come in one piece

    def _parse(self, data: bytes | memoryview) -> None:
        """Parse a part of one request."""
        self._told = False
        offered = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            offered = True
        except httptools.HttpParserError as error:
            cause = error.__context__
            if isinstance(cause, httptools.HttpParserError) or cause is None:
                raise BadRequest("Invalid HTTP message.") from None
            raise cause from None
        if offered:
            self._decline_upgrade()
        elif self.begun and not self._told:
            self._untold_bytes += len(data)
            if self._untold_bytes > self._limits.max_head:
                raise head_too_large(self._limits)

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
        self.stored = self._storage.take(length, self)
        if self.stored is None:
            return False
        self.stored.view[: len(body)] = body
        self.begun = self.in_body = self._told = True
        self._length = length
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

    def _decline_upgrade(self) -> None:
        """Read a head again as if it did not offer an upgrade: of a request that does, httptools skips the body."""
        self._upgrade = True
        version = self._parser.get_http_version()
        start = f"{self._parser.get_method().decode()} {self._url.decode('latin-1')} HTTP/{version}"
        headers = [f"{name}: {value}" for name, value in self._headers if name.lower() != "upgrade"]
        self._parser = httptools.HttpRequestParser(self)
        self._parse("\r\n".join((start, *headers, "\r\n")).encode("latin-1"))

    def request_so_far(self) -> Request:
        """What is known of the request being received, for the answer that refuses it."""
        if self._again is not None:
            return self._repeat(*self._again, b"", self.body_began)
        method = self._parser.get_method().decode("latin-1") if self.in_body else "-"
        target = self._url.decode("latin-1") or "-"
        request_id = self._said.id or new_request_id()
        return Request(method, target, [], keep_alive=False, received=self._now(), id=request_id)

    def _head(self) -> Request:
        method, target = self._parser.get_method().decode("latin-1"), self._url.decode("latin-1")
        return Request(method, target, self._headers, received=self._now(), id=self._said.id)

    # The parser calls these.

    def on_message_begin(self) -> None:
        self.begun = self._told = True
        self.in_body = False
        self.body_bytes = self._untold_bytes = 0
        self._length = -1
        self._url = b""
        self._headers = []
        self._ours = []
        self._head_bytes = 0
        self._body = b""
        self.stored = None
        self._said.id = ""
        self.budget = self.priority = None

    def on_url(self, url: bytes) -> None:
        self._url = self._url + url if self._url else url
        self._count_head(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        # `_tell` and `_count_head` without their calls: this runs for each header (0.5 µs less)
        self._told, self._untold_bytes = True, 0
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._limits.max_head:
            raise head_too_large(self._limits)
        if self.in_body:
            return  # a trailer: nobody here has a use for it, and it must not pass for a header
        text = value.rstrip(b" \t").decode("latin-1")
        headers = self._headers
        headers.append((name.decode("latin-1"), text))
        if len(name) in LENGTHS and (ours := name.lower()) in NAMES:
            self._ours.append((ours, text))
        if len(headers) > self._limits.max_headers:
            raise head_too_large(self._limits)

    def on_headers_complete(self) -> None:
        self.in_body = True
        self.body_began = self._now()
        version = self._parser.get_http_version()
        if self._boundaries.foreign:
            raise BadRequest("Only HTTP is spoken here: the first line names another protocol.")
        if version != "1.1" and version != "1.0":
            raise Refused(505, "BadRequestException", f"HTTP/{version} is not spoken here: use HTTP/1.1.")
        if self._parser.get_method() == b"CONNECT":
            raise MethodNotAllowed
        if self._url[:1] != b"/" or b"#" in self._url:
            check_target(self._url.decode("latin-1"), self._parser.get_method())
        if self._parser.should_upgrade():
            return  # to be read again
        said = self._said
        said.read(self._ours, version)
        self._length = said.length
        self.budget, self.priority = said.budget, said.priority
        if said.length > self._limits.max_body:
            raise body_too_large(self._limits, f"{said.length} bytes")
        if self._on_head is not None and (said.length > 0 or said.chunked):
            self._on_head(self._head())
        if said.length >= SHARED_FROM and self._storage is not None:
            self.stored = self._storage.take(said.length, self)
        if said.expects:
            self._on_expect()

    def on_body(self, body: bytes) -> None:
        self._tell()
        space = self.space()
        self.body_bytes += len(body)
        if self.body_bytes > self._limits.max_body:
            raise body_too_large(self._limits, f"{self.body_bytes} bytes or more")
        if space is not None:
            space[: len(body)] = body
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
            body = self._whole()
        else:
            body = self._body if isinstance(self._body, bytes) else gather(self._body, self._storage)
        named, self._said.id, self._body = self._said.id, "", b""
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
        if self._raw is not None:
            self._remember(self._raw, request, named)
        self._on_request(request)

    def _remember(self, head: bytes, request: Request, named: str) -> None:
        """Know this head again; it is the one of this request, which the client has given that id."""
        self._raw = None
        if not (self._upgrade or self._said.expects):
            kind = request.content_type
            self._known = know(head, msgspec.structs.replace(request, body=b"", id=named, kind=kind))
            self._unlike += 1

    def _tell(self) -> None:
        self._told = True
        self._untold_bytes = 0

    def _count_head(self, count: int) -> None:
        self._tell()
        self._head_bytes += count
        if self._head_bytes > self._limits.max_head:
            raise head_too_large(self._limits)
