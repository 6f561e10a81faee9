"""`GET /tsctl/events`: the daemon's events, as a document, or as a stream of server-sent events.

    model=MODEL[/VERSION]   only those of this model
    level=LEVEL             only those of this level or a higher one: info, warning, error
    since=TIME              only those from this time on, in seconds since the epoch
    after=SEQUENCE          only those behind this one; an EventSource sends it as `Last-Event-ID`
    limit=N                 at most N: the last ones, or with `after` the first ones

The document: `events`, the oldest first, and `last`, the sequence to ask for next. The stream (with
`Accept: text/event-stream`) sends the same events, and then each new one: `id` is its sequence, `data` its JSON.
"""

import math
from collections.abc import Callable

from tsctl.daemon.api.management.commands import Parameters, WordRoute
from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.errors import BadRequest, DaemonError
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.events.events import LEVELS, Event, Events
from tsctl.daemon.http.bounds.sending import NotRead
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import JSON, Response
from tsctl.daemon.http.router import Route
from tsctl.daemon.model_settings.kinds import Integer

LIMIT = 1000  # events in an answer, unless the client asks for another number
HEARTBEAT = 15.0  # seconds: a comment, by which a dead client is noticed
LOOK_EVERY = 1.0  # seconds between two looks into the file, which another daemon may write during an upgrade
MOST_UNREAD = 256 * 1024  # bytes that a client may leave unread, beside the events that were there at the start
MOST_STREAMS = 64
SSE = "text/event-stream"


class TooManyStreams(DaemonError):
    status = 503
    kind = "ServiceUnavailableException"
    retry_after = 1

    def __init__(self) -> None:
        super().__init__(f"Too many clients follow the events: at most {MOST_STREAMS} may. Close one, and try again.")


class _Query:
    """The events that a client asks for.

    Raises:
        BadRequest: a parameter is invalid.
    """

    def __init__(self, exchange: Exchange) -> None:
        given = Parameters(exchange.request)
        self.model, _, self.version = (given.text("model") or "").partition("/")
        self.level = given.text("level") or "info"
        if self.level not in LEVELS:
            raise BadRequest(f"level is {self.level!r}; expected {', '.join(LEVELS)}.")
        self.since = _seconds(given.text("since"))
        resumed = exchange.request.header("last-event-id")
        self.after = int(resumed) if resumed.isdecimal() and len(resumed) < 16 else given.read("after", Integer())
        limit = given.read("limit", Integer())
        self.limit = LIMIT if limit is None else limit

    def find(self, events: Events) -> tuple[list[Event], int]:
        """Return the events that are there, and the sequence to ask for next."""
        found = events.after(self.after or 0, self.model, self.version, since=self.since, level=self.level)
        if len(found) <= self.limit:
            return found, events.last
        if self.after is None or not self.limit:
            return found[len(found) - self.limit :], events.last
        return found[: self.limit], found[self.limit - 1].sequence

    def matches(self, event: Event) -> bool:
        at_least = LEVELS[event.level] >= LEVELS[self.level]
        return at_least and (not self.model or event.concerns(self.model, self.version))


class EventStream:
    """One client that follows the events.

    Args:
        ended: called once, when the stream has ended.
    """

    def __init__(
        self, exchange: Exchange, query: _Query, events: Events, clock: Clock, ended: Callable[["EventStream"], None]
    ) -> None:
        self._exchange = exchange
        self._query = query
        self._events = events
        self._clock = clock
        self._ended = ended
        self._timer: Timer | None = None
        self._silent = 0.0  # seconds
        self._most_unread = MOST_UNREAD

    def begin_stream(self) -> None:
        """Send the events that are there, and from then on each new one."""
        exchange = self._exchange
        exchange.on_leave = self._left
        exchange.start(Response(200, headers=(("Content-Type", SSE), ("Cache-Control", "no-cache"))))
        found, _ = self._query.find(self._events)
        first = b": events of tsctl\n\n" + b"".join(map(_message, found))
        self._most_unread += len(first)
        self._events.readers[self._take] = None
        self._timer = self._clock.later(LOOK_EVERY, self._look)
        exchange.send(first)

    def close(self) -> None:
        """End the answer: the daemon stops, or another one has taken its place."""
        self._exchange.finish()
        self._end()

    def _take(self, event: Event) -> None:
        if self._query.matches(event):
            self._silent = 0.0
            self._send(_message(event))

    def _look(self) -> None:
        self._timer = self._clock.later(LOOK_EVERY, self._look)
        self._events.refresh()
        self._silent += LOOK_EVERY
        if self._silent >= HEARTBEAT:
            self._silent = 0.0
            self._send(b": still here\n\n")

    def _send(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange.size + len(data) > self._most_unread:
            self._end()
            exchange.fail(NotRead(f"The client left {exchange.size} bytes of events unread."))
            return
        exchange.send(data)

    def _left(self, gone: bool) -> bool:  # noqa: ARG002 - nobody sends half of a connection's end and reads on
        self._end()
        return False

    def _end(self) -> None:
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        self._events.readers.pop(self._take, None)
        self._ended(self)


class EventsRoute:
    """The route, and the streams that it has begun."""

    def __init__(self, events: Events, clock: Clock) -> None:
        self._events = events
        self._clock = clock
        self._streams: dict[EventStream, None] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"<EventsRoute {len(self._streams)} streams>"

    @property
    def routes(self) -> dict[str, Route]:
        return {"tsctl": WordRoute({"events": self._answer})}

    def close(self) -> None:
        """End all streams, and begin none: their connections must not keep this daemon."""
        self._closed = True
        for stream in list(self._streams):
            stream.close()

    def _answer(self, exchange: Exchange) -> None:
        query = _Query(exchange)
        if SSE in exchange.request.header("accept"):
            if len(self._streams) >= MOST_STREAMS:
                raise TooManyStreams
            stream = EventStream(exchange, query, self._events, self._clock, self._forget)
            self._streams[stream] = None
            stream.begin_stream()
            if self._closed:
                stream.close()
            return
        found, last = query.find(self._events)
        exchange.respond(Response(200, json_bytes({"events": found, "last": last}), (JSON,)))

    def _forget(self, stream: EventStream) -> None:
        self._streams.pop(stream, None)


def _message(event: Event) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (event.sequence, json_bytes(event))


def _seconds(text: str | None) -> float:
    try:
        seconds = 0.0 if text is None else float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise BadRequest(f"since is {text!r}; expected seconds since the epoch.")
    return seconds
