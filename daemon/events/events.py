"""The daemon's events: told in the log, kept in a ring and in a file, and forwarded to listeners."""

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

from msgspec.structs import replace

from tsctl.daemon.core.logs import without_secrets
from tsctl.daemon.events.event import CORE_KINDS, LEVELS, Event, EventKind, Journal
from tsctl.daemon.server.extensions import EXTENSIONS

KINDS: dict[str, EventKind] = CORE_KINDS | {
    row.name: EventKind(row.level, row.meaning) for extension in EXTENSIONS for row in extension.events
}


KEPT = 2000  # events in memory: 1 MB at 500 bytes each
MOST_TEXT = 1000  # characters
MOST_REQUESTS = 100  # ids in one event

_log = logging.getLogger("tsctl.daemon.events")

Listener = Callable[[Event], None]


class Events:
    """The latest events of the daemon. Not thread-safe: events are added on the event loop.

    Args:
        journal: the file that keeps the events for the next daemon; None to keep them in memory only.
        wall: returns seconds since the epoch.
        kept: events in memory.

    Attributes:
        last: the sequence of the latest event; 0 before the first.
        counts: how many of each kind were added here, by another daemon's not.
        listeners: called with each event after it was added, in the order of their addition. They must not raise.
    """

    def __init__(self, journal: Journal | None = None, wall: Callable[[], float] = time.time, kept: int = KEPT) -> None:
        self.last = 0
        self.counts: Counter[str] = Counter()
        self.listeners: dict[Listener, None] = {}
        self._ring: deque[Event] = deque(maxlen=kept)
        self._unsaved: deque[Event] = deque(maxlen=kept)  # could not be written yet
        self._journal = journal
        self._wall = wall
        if journal is not None:
            self._take(journal.read_last(kept))

    def __repr__(self) -> str:
        return f"<Events {len(self._ring)}, the last is {self.last}>"

    def add(
        self, kind: str, text: str, *, model: str = "", version: str = "", worker: int = 0, requests: Sequence[str] = ()
    ) -> None:
        """Add an event: log it, keep it, and tell the listeners.

        Args:
            kind: a key of `KINDS`, which names its level.
            text: the first line counts; secrets in its URLs are removed.
            model, version, worker, requests: as in `Event`.
        """
        level, line = KINDS[kind].level, without_secrets(_encodable(text).strip().partition("\n")[0])[:MOST_TEXT]
        model, version = _encodable(model), _encodable(version)
        ids, journal = tuple(requests[:MOST_REQUESTS]), self._journal
        failed = journal is not None and bool(journal.error)
        self.counts[kind] += 1
        with nullcontext() if journal is None else journal.lock():
            self.refresh()
            event = Event(self.last + 1, self._wall(), level, kind, model, version, worker, ids, line)
            if journal is not None:
                self._unsaved.append(event)
                if journal.write(self._unsaved):
                    self._unsaved.clear()
        _log.log(LEVELS[level], "%s", event.line, extra={"fields": event.fields})
        self._take([event])
        if journal is not None and journal.error and not failed:
            self.add("log-lost", f"{journal.error}; events are kept in memory until it can be written")

    def after(
        self, sequence: int = 0, model: str = "", version: str = "", *, since: float = 0.0, level: str = "info"
    ) -> list[Event]:
        """Return the kept events behind a sequence, the oldest first.

        Args:
            model, version: only those of this model, and of this version unless that is empty; all if both are empty.
            since: only those from this time on, in seconds since the epoch.
            level: only those of this level or a higher one.
        """
        self.refresh()
        least = LEVELS[level]
        return [
            event
            for event in self._ring
            if event.sequence > sequence
            and event.time >= since
            and LEVELS[event.level] >= least
            and (not model or event.concerns(model, version))
        ]

    def refresh(self) -> None:
        """Take what another daemon has added to the file during an upgrade."""
        if self._journal is not None:
            self._take(self._journal.news())

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _take(self, events: Iterable[Event]) -> None:
        for event in events:
            if event.sequence <= self.last:  # numbered by a daemon that could not read the file
                event = replace(event, sequence=self.last + 1)
            self.last = event.sequence
            self._ring.append(event)
            for listener in tuple(self.listeners):
                try:
                    listener(event)
                except Exception:  # noqa: BLE001 - else the code that reports a fact would break off, and other listeners wait
                    _log.exception("a listener of events has raised")


def _encodable(text: str) -> str:
    """Return a text with half characters escaped (a file name that is no UTF-8 has some): they cannot be written.

    Such an event would be tried again with each further one, and none would ever be written again.
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
