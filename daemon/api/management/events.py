"""`GET /tsctl/events`: the daemon's events, as a document.

    model=MODEL[/VERSION]   only those of this model
    level=LEVEL             only those of this level or a higher one: info, warning, error
    since=TIME              only those from this time on, in seconds since the epoch
    after=SEQUENCE          only those behind this one; an EventSource sends it as `Last-Event-ID`
    limit=N                 at most N: the last ones, or with `after` the first ones

The document: `events`, the oldest first, and `last`, the sequence to ask for next.
"""

import math

from tsctl.daemon.api.management.commands import Parameters, word_routes
from tsctl.daemon.core.errors import BadRequest
from tsctl.daemon.core.texts.json_text import json_bytes
from tsctl.daemon.events.events import LEVELS, Event, Events
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import JSON, Response
from tsctl.daemon.http.router import Route
from tsctl.daemon.model_settings.kinds import Integer

LIMIT = 1000  # events in an answer, unless the client asks for another number


class EventQuery:
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


def events_routes(events: Events) -> dict[str, Route]:
    def answer(exchange: Exchange) -> None:
        found, last = EventQuery(exchange).find(events)
        exchange.respond(Response(200, json_bytes({"events": found, "last": last}), (JSON,)))

    return word_routes({"events": answer})


def _seconds(text: str | None) -> float:
    try:
        seconds = 0.0 if text is None else float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise BadRequest(f"since is {text!r}; expected seconds since the epoch.")
    return seconds
