"""Parse bytes into requests: llhttp (httptools) parses; this module joins the pieces and enforces the limits.

Received bytes are cut where requests end (boundaries.py), so that each request is parsed alone: as many as there is
`room` for; the rest is kept unparsed until there is room again.

A client that keeps its connection mostly sends the same head again: such a head is compared, not parsed
(head_cache.py). A large body of known length is not parsed, as nothing in it matters here. The part that came with its
headers is copied into the arena, and the rest is received there (`space`, `filled`).
"""

import sys
from collections.abc import Callable

import httptools
import msgspec

from daemon.core.arena import SHARED_FROM, Payload, Storage, Stored, Unshared, gather
from daemon.core.errors import BadRequest, MethodNotAllowed
from daemon.http.limits import HttpLimits
from daemon.http.messages import Request, new_request_id
from daemon.http.parsing.boundaries import Boundaries
from daemon.http.parsing.head_cache import LONGEST, Repeated, know
from daemon.http.parsing.headers import LENGTHS, NAMES, Ours
from daemon.http.parsing.refusals import Refused, body_too_large, head_too_large
from daemon.http.parsing.target import check_target

CHEAP = 64 * 1024  # bytes of a body that are copied to free arena memory: 5 µs
PATIENCE = 8  # unlike heads in a row, after which none is remembered: they all differ, say by a request id


class Receiver:
    """Reads the requests of one connection.

    Args:
        limits: requests beyond these are rejected.
        now: returns the time, for `Request.received`.
        on_request: called with each complete request.
        on_expect: called when a client waits for `100 Continue` before it sends its body.
        storage: where large bodies are received; None for ordinary memory.
        on_head: called with the head of each request that has a body, before the body is read; a raised error
            rejects the request. None for no check.

    Attributes:
        begun: a request has begun and is not complete.
        in_body: its headers are complete.
        body_bytes, body_began: the received bytes of its body, and when the body began.
        budget, priority: its headers, see Request.
        stored: where its body is received, if that is large.
        room: requests that may be passed to `on_request`, which updates this number.
        kept: input beyond those; parsed only by `go_on`.
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
        self._length = -1  # of the body, if its head has a length
        self._url = b""
        self._headers: list[tuple[str, str]] = []
        self._ours: list[tuple[bytes, str]] = []
        self._head_bytes = 0
        self._told = False  # the parser has called back for the bytes it was fed
        self._untold_bytes = 0  # bytes without a callback: a header, a trailer or a chunk's size without an end
        self._upgrade = False
        self._body: bytes | bytearray = b""
        self._known: Repeated | None = None  # the head of the previous request
        self._again: tuple[Repeated, bytes] | None = None  # a repeated head, and its length
        self._raw: bytes | None = None  # the head of the request that has begun, if the head may be remembered
        self._unlike = 0 if on_head is None else PATIENCE  # heads since one was like the one before

    def space(self) -> memoryview | None:
        """Return where the rest of a large body belongs, and no other bytes. None if the next bytes are to be fed."""
        if self.stored is None or self.closed:
            return None
        space = self.stored.view[self.body_bytes :]
        if not space:  # the rest of its place was given up
            self.stored = Unshared(self._length, self.stored.view)
            space = self.stored.view[self.body_bytes :]
        return space

    def filled(self, count: int) -> None:
        """Account for `count` bytes that were received into `space`."""
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
        """Move the body out of the arena: at once if little of it has come, else from the end of the received part."""
        stored = self.stored
        if isinstance(stored, Stored):
            stored.cut(max(1, self.body_bytes))
            if self.body_bytes <= CHEAP:
                self.stored = Unshared(self._length, stored.view[: self.body_bytes])

    def _whole(self) -> Payload:
        """Return the completed large body."""
        stored, self.stored = self.stored, None
        assert stored is not None and self._storage is not None
        self._storage.arrived(self)
        return stored if isinstance(stored, Stored) else bytes(stored)

    def leave(self) -> None:
        """Stop receiving."""
        self.closed = True
        if self.stored is not None and self._storage is not None:
            self.stored = None
            self._storage.arrived(self)
        self._body = self.kept = b""

    def feed(self, data: bytes | memoryview) -> None:
        """Parse received bytes.

        Raises:
            DaemonError: the request being received is rejected; nothing more can be read.
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
        """Parse the kept input, as far as there is room.

        Raises:
            DaemonError: as `feed`.
        """
        self._take_apart(self.kept)

    def _take_apart(self, data: bytes) -> None:
        """Parse request by request."""
        boundaries, self.kept = self._boundaries, b""
        at = begins = 0  # of the next part, and of the request that it belongs to
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
            self._raw = None  # such a request is never remembered: it does not come in one piece

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
        """Return whether `data` was taken: one whole request with the known head, or the beginning of one."""
        found = None if self.closed else known.beginning_of(data)
        if found is None or not self._take(known, *found):
            self._known = None
            return False
        self._unlike = 0
        return True

    def _take(self, known: Repeated, body: bytes, digits: bytes) -> bool:
        """Take a request whose head is known, whole or with its body to come; return whether that was possible."""
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
        """Parse a head again without its offer of an upgrade: httptools skips the body of a request that offers one."""
        self._upgrade = True
        version = self._parser.get_http_version()
        start = f"{self._parser.get_method().decode()} {self._url.decode('latin-1')} HTTP/{version}"
        headers = [f"{name}: {value}" for name, value in self._headers if name.lower() != "upgrade"]
        self._parser = httptools.HttpRequestParser(self)
        self._parse("\r\n".join((start, *headers, "\r\n")).encode("latin-1"))

    def request_so_far(self) -> Request:
        """Return the known part of the request being received, for the answer that rejects it."""
        if self._again is not None:
            return msgspec.structs.replace(self._repeat(*self._again, b"", self.body_began), keep_alive=False)
        method = self._parser.get_method().decode("latin-1") if self.in_body else "-"
        target = self._url.decode("latin-1") or "-"
        request_id = self._said.id or new_request_id()
        return Request(method, target, [], keep_alive=False, received=self._now(), id=request_id)

    def _head(self) -> Request:
        method, target = self._parser.get_method().decode("latin-1"), self._url.decode("latin-1")
        return Request(method, target, self._headers, received=self._now(), id=self._said.id)

    # Callbacks of the parser.

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
            return  # a trailer: unused, and not to be mistaken for a header
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
            raise BadRequest("The request line names another protocol; use HTTP/1.1.")
        if version != "1.1" and version != "1.0":
            raise Refused(505, "BadRequestException", f"HTTP/{version} is not supported; use HTTP/1.1.")
        if self._parser.get_method() == b"CONNECT":
            raise MethodNotAllowed
        if self._url[:1] != b"/" or b"#" in self._url:
            check_target(self._url.decode("latin-1"), self._parser.get_method())
        if self._parser.should_upgrade():
            return  # the head is parsed again
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
            self._body += body  # not a list: chunks of two bytes would cost twenty times their size

    def on_message_complete(self) -> None:
        if not self._parser.should_upgrade():
            self._complete(self._parser)

    def _complete(self, parser: httptools.HttpRequestParser) -> None:
        """Emit the complete request; its parser knows the first line."""
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
            # A client that offers to upgrade is answered in HTTP/1.1, and the connection closes.
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
        """Remember the head of this request, to which the client gave the id `named` (empty for none)."""
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
