"""Lines of several logs, merged by time: those that are there, and those that are added."""

import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any

from tsctl.logs.backlog import backlog
from tsctl.logs.following import FollowedLog
from tsctl.logs.sources import Line, LogSource, timed

POLL = 0.2  # seconds
HOLD = 0.7  # seconds; the daemon writes its access log half a second late (daemon/http/access_log.py)


def merged(
    sources: Iterable[LogSource], count: int | None, since: float | None, ends: dict[LogSource, int] | None = None
) -> Iterator[Line]:
    """Yield the last lines of all logs together, the oldest first; arguments as of `backlog`."""
    each = [backlog(source, count, since, None if ends is None else ends[source]) for source in sources]
    if count is not None and since is None:
        each = [iter(list(lines)) for lines in each]  # few lines: no file stays open
    lines = heapq.merge(*each, key=attrgetter("time"))
    return lines if count is None else iter(deque(lines, count))


class HeldLines:
    """Lines that wait `hold` seconds for earlier ones of other logs."""

    def __init__(self, hold: float) -> None:
        self._hold = hold
        self._numbers = itertools.count()
        self._heap: list[tuple[float, int, int, float, Line]] = []

    def add(self, lines: Iterable[Line], source: int, now: float) -> None:
        """Add the lines of a source, which comes before those with a higher number where times are equal."""
        for line in lines:
            heapq.heappush(self._heap, (line.time, source, next(self._numbers), now, line))

    def due(self, now: float) -> list[Line]:
        """Remove and return the lines that have waited long enough, the oldest first; `now` on a steady clock."""
        found = []
        while self._heap and self._heap[0][3] + self._hold <= now:
            found.append(heapq.heappop(self._heap)[-1])
        return found


class Followed:
    """The logs of which lines are added; also those that are new.

    Args:
        find: returns the logs that there are now.
    """

    def __init__(self, find: Callable[[], list[LogSource]]) -> None:
        self._find = find
        self._logs = {source: FollowedLog(source.path) for source in find()}
        self._times: dict[LogSource, float] = {}
        several = len(self._logs) > 1 and any(source.log == "access" for source in self._logs)
        self._held = HeldLines(HOLD if several else 0.0)

    def backlog(self, count: int | None, since: float | None) -> Iterator[Line]:
        """Yield the lines before those of `added`."""
        for line in merged(self._logs, count, since, {source: log.position for source, log in self._logs.items()}):
            self._times[line.source] = line.time
            yield line

    def added(self, wall: float, now: float) -> list[Line]:
        """Return the lines since the last call; `wall` in seconds since the epoch, `now` on a steady clock."""
        for number, (source, log) in enumerate(self._logs.items()):
            lines = list(timed(log.lines(), source, wall, self._times.get(source)))
            if lines:
                self._times[source] = lines[-1].time
                self._held.add(lines, number, now)
        for source in self._find():
            if source not in self._logs:
                self._logs[source] = FollowedLog(source.path)
                new = list(backlog(source, None, None, self._logs[source].position))
                self._held.add(new, len(self._logs), now)
        return self._held.due(now)

    def close(self) -> None:
        for log in self._logs.values():
            log.close()


def follow(followed: Followed, count: int | None, since: float | None) -> Iterator[list[Line]]:
    """Yield the last lines, then those that are added, without end; lines that came together are one list."""
    try:
        yield list(followed.backlog(count, since))
        while True:
            time.sleep(POLL)
            yield followed.added(time.time(), time.monotonic())
    finally:
        followed.close()


def documents(lines: Iterable[Line]) -> Iterator[dict[str, Any]]:
    """Yield lines as JSON objects; those that continue another one are part of its text."""
    before: Line | None = None
    document: dict[str, Any] = {}
    for line in lines:
        if before is not None and line.continues and line.source == before.source:
            document["text"] = f"{document.get('text', '')}\n{line.text}"
            continue
        if before is not None:
            yield document
        before, document = line, line.document()
    if before is not None:
        yield document
