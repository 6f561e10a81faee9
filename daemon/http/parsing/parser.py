"""Parse bytes into requests: llhttp (httptools) parses; this module joins the pieces and enforces the limits.

Received bytes are cut where requests end (body.py), so that each request is parsed alone: as many as there is
`room` for; the rest is kept unparsed until there is room again. states/receiver.py draws what the next bytes belong to:

           ┌───────────────complete───────────────┐
           ▼                                      │
         IDLE ──begun──▶ HEAD ──parsed──▶ BODY ───┤
           │             │  ▲                     │
           │        begun└──┘└──placed──▶ STORED ─┘
           └──────────────known─────────────▲
    any state ──left──▶ CLOSED

A client that keeps its connection mostly sends the same head again: such a head is compared, not parsed
(head.py). A large body of known length is not parsed, as nothing in it matters here. The part that came with its
headers is copied into the arena, and the rest is received there (`space`, `filled`).
"""

import sys
from collections.abc import Callable

import httptools

from tsctl.daemon.core.arena import SHARED_FROM, Storage
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.http.limits import HttpLimits, body_too_large, head_too_large
from tsctl.daemon.http.messages import Request, new_request_id
from tsctl.daemon.http.parsing.body import Body, Boundaries
from tsctl.daemon.http.parsing.head import CachedHead, Head, HeadCache
from tsctl.daemon.http.states.receiver import BODY, CLOSED, HEAD, IDLE, STORED


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
        state: a ReceiverState.
        body: of the request being received.
        room: requests that may be passed to `on_request`, which updates this number.
        kept: input beyond those; parsed only by `go_on`.
        cut_short: a request had begun and was not complete when the receiver was closed.
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
        self.state: int = IDLE
        self.body = Body(storage, limits.max_body)
        self.room = sys.maxsize
        self.kept = b""
        self.cut_short = False
        self._limits = limits
        self._now = now
        self._on_request = on_request
        self._on_expect = on_expect
        self._on_head = on_head
        self._cache = HeadCache(compares=on_head is None)
        self._boundaries = Boundaries()
        self._parser = httptools.HttpRequestParser(self)
        self._head = Head(limits)
        self._request: Request | None = None  # the one being received, once its head is complete
        self._silent = 0  # bytes since the parser called back: a header, a trailer or a chunk's size without an end
        self._upgrade = False  # the client offered to upgrade, and is answered in HTTP/1.1 for the last time

    @property
    def begun(self) -> bool:
        """Whether a request has begun and is not complete."""
        return self.state != IDLE and self.state != CLOSED

    @property
    def budget(self) -> str | None:
        """The header `x-request-deadline-ms` of the request being received; None without, and before its end."""
        return None if self._request is None else self._request.budget

    def feed(self, data: bytes | memoryview) -> None:
        """Parse received bytes; in the state STORED, the bytes belong into `space`.

        Raises:
            DaemonError: the request being received is rejected; nothing more can be read.
        """
        if self.state == IDLE:
            data = bytes(data)
            if self.kept or self.room <= 0:
                self.kept += data
            elif not self._recall(data):
                self._take_apart(data)
        elif self.state == BODY and self.body.count + len(data) <= self.body.length:
            self._parse(data)  # a part of a body, and nothing else
        else:
            assert self.state != STORED
            self._take_apart(bytes(data))

    def go_on(self) -> None:
        """Parse the kept input, as far as there is room.

        Raises:
            DaemonError: as `feed`.
        """
        self._take_apart(self.kept)

    def space(self) -> memoryview | None:
        """Return where the next bytes belong, and no others; None if they are to be fed."""
        return self.body.space() if self.state == STORED else None

    def filled(self, count: int) -> None:
        """Account for `count` bytes that were received into `space`."""
        body = self.body
        body.count += count
        if body.count >= body.length and self.state == STORED:
            self._complete()

    def leave(self) -> None:
        if self.state != CLOSED:
            self.cut_short = self.begun
            self.state = CLOSED
            self.body.drop()
            self.kept = b""

    def request_so_far(self) -> Request:
        """Return the known part of the request being received, for the answer that rejects it."""
        head, request = self._head, self._request
        if request is None:
            method, target, named = head.method, head.url.decode("latin-1") or "-", head.said.id or new_request_id()
            client = None
        else:
            method, target, named, client = request.method, request.target, request.id, request.client
        return Request(method, target, [], keep_alive=False, received=self._now(), id=named, client=client)

    def _recall(self, data: bytes) -> bool:
        """Return whether `data` was taken: one whole request with the known head, or the beginning of one."""
        known = self._cache.known
        if known is None:
            return False
        found = known.beginning_of(data)
        if found is None or not self._take_known(known, found[0], found[1]):
            self._cache.miss()
            return False
        self._cache.hit()
        return True

    def _take_known(self, known: CachedHead, data: bytes, digits: bytes) -> bool:
        """Take a request whose head is known, whole or with its body to come; return whether that was possible."""
        length = int(digits)
        if length > self._limits.max_body:
            return False
        if len(data) == length and length < SHARED_FROM:
            now = self._now()
            self._on_request(known.request_with(digits, data, now, now))
            return True
        body = self.body
        if len(data) >= length or not body.take_place(length):
            return False
        body.begin_request()
        body.length, body.began = length, self._now()
        body.add_bytes(data)
        self._request = known.request_with(digits, b"", body.began, 0.0)
        self.state = STORED
        return True

    def _take_apart(self, data: bytes) -> None:
        boundaries, cache, body = self._boundaries, self._cache, self.body
        self.kept = b""
        at = begins = 0  # of the next part, and of the request that it belongs to
        size = len(data)
        while at < size and self.state != CLOSED:
            if self.state == IDLE:
                begins = boundaries.end_of_blank(data, at)
                if begins > at:
                    end = begins
                elif self.room <= 0:
                    self.kept = data[at:]
                    return
                else:
                    end = boundaries.end_of_head(data, at)
                    cache.expect(data, at, end)
                    if end < 0:
                        end = size
            elif body.length >= 0:
                end = min(size, at + body.length - body.count)
            else:
                end = boundaries.end_of_part(data, at)
            self._parse(data if end - at == size else data[at:end])
            at = end
        if self.state == HEAD or (self.state == BODY and body.length < 0):
            boundaries.keep(data, begins)
        else:
            boundaries.forget()
        if self.state == STORED:
            self._parser = httptools.HttpRequestParser(self)  # the old one waits for a body that it will never see
        elif self.state != IDLE:
            cache.give_up()

    def _parse(self, data: bytes | memoryview) -> None:
        """Parse a part of one request."""
        self._silent += len(data)
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
        elif self._silent > self._limits.max_head and self.begun:
            raise head_too_large(self._limits)

    def _decline_upgrade(self) -> None:
        """Parse a head again without its offer of an upgrade: httptools skips the body of a request that offers one."""
        self._upgrade = True
        self._parser = httptools.HttpRequestParser(self)
        self._parse(self._head.without_upgrade())

    def _complete(self) -> None:
        request, self._request = self._request, None
        assert request is not None
        self.state = IDLE
        request.body = self.body.take_body()
        request.received = self._now()
        said = self._head.said
        self._cache.remember(request, said.id, repeatable=not (self._upgrade or said.expects))
        self._on_request(request)

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        assert self.state != CLOSED  # one request is parsed at a time
        self.state = HEAD
        self._silent = 0
        self._head.begin_request()
        self.body.begin_request()

    def on_url(self, url: bytes) -> None:
        self._silent = 0
        self._head.add_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._silent = 0
        if self.state == HEAD:
            self._head.add_header(name, value)
        else:
            self._head.count(len(name) + len(value) + 4)  # a trailer: unused, and not to be mistaken for a header

    def on_headers_complete(self) -> None:
        parser, head, body = self._parser, self._head, self.body
        body.began = self._now()
        method = parser.get_method()
        head.method = method.decode("latin-1")
        if self._boundaries.foreign:
            raise BadRequest("The request line names another protocol; use HTTP/1.1.")
        head.check(method, parser.get_http_version())
        if parser.should_upgrade():
            return  # the head is parsed again
        said = head.read()
        body.length = said.length
        if said.length > self._limits.max_body:
            raise body_too_large(self._limits, f"{said.length} bytes")
        request = Request(
            head.method, head.url.decode("latin-1"), head.headers, b"", head.version == "1.0",
            parser.should_keep_alive() and not self._upgrade, body.began, 0.0, said.budget, said.priority, "",
            said.id or new_request_id(), None, said.timed, None, said.model_version, said.coding,
        )  # fmt: skip
        self._request = request
        if self._on_head is not None and (said.length > 0 or said.chunked):
            self._on_head(request)
        self.state = STORED if body.take_place(said.length) else BODY
        if said.expects:
            self._on_expect()

    def on_body(self, data: bytes) -> None:
        self._silent = 0
        size = self.body.count + len(data)
        if size > self._limits.max_body:
            raise body_too_large(self._limits, f"{size} bytes or more")
        self.body.add_bytes(data)

    def on_message_complete(self) -> None:
        request = self._request
        if request is not None:  # else an upgrade was offered, and the head is parsed again
            if self._head.said.chunked:
                request.keep_alive = self._parser.should_keep_alive() and not self._upgrade  # as its trailers may say
            self._complete()
