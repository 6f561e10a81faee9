"""`GET /tsctl/events` with `Accept: text/event-stream`: the events of the document, and then each new one.

They are server-sent: `id` is an event's sequence, `data` its JSON. A client that reads too slowly is cut off.
"""

from collections.abc import Callable

from tsctl.daemon.api.management.events import EventQuery
from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.errors import LimitReached, ResourceNotFound
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.events.events import Event, Events
from tsctl.daemon.http.bounds.sending import NotRead
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response

HEARTBEAT = 15.0  # seconds: a comment, by which a dead client is noticed
LOOK_EVERY = 1.0  # seconds between two looks into the file, which another daemon may write during an upgrade
MOST_UNREAD = 256 * 1024  # bytes that a client may leave unread, beside the events that were there at the start
MOST_STREAMS = 64
SSE = "text/event-stream"


class TooManyStreams(LimitReached):
    def __init__(self) -> None:
        super().__init__(f"Too many clients follow the events: at most {MOST_STREAMS} may. Close one, and try again.")


class EventStream:
    """One client that follows the events.

    Args:
        ended: called once, when the stream has ended.
    """

    def __init__(
        self,
        exchange: Exchange,
        query: EventQuery,
        events: Events,
        clock: Clock,
        ended: Callable[["EventStream"], None],
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


class EventStreams:
    """The streams that have begun."""

    def __init__(self, events: Events, clock: Clock) -> None:
        self._events = events
        self._clock = clock
        self._streams: dict[EventStream, None] = {}
        self._closed = False

    def __repr__(self) -> str:
        return f"<EventStreams {len(self._streams)}>"

    def close(self) -> None:
        """End all streams, and begin none: their connections must not keep this daemon."""
        self._closed = True
        for stream in list(self._streams):
            stream.close()

    def answer(self, exchange: Exchange) -> None:
        """Begin a stream; ResourceNotFound where a document is asked for, which the core answers."""
        if SSE not in exchange.request.header("accept"):
            raise ResourceNotFound
        query = EventQuery(exchange)
        if len(self._streams) >= MOST_STREAMS:
            raise TooManyStreams
        stream = EventStream(exchange, query, self._events, self._clock, self._forget)
        self._streams[stream] = None
        stream.begin_stream()
        if self._closed:
            stream.close()

    def _forget(self, stream: EventStream) -> None:
        self._streams.pop(stream, None)


def _message(event: Event) -> bytes:
    return b"id: %d\ndata: %b\n\n" % (event.sequence, json_bytes(event))
