"""Lines of several logs, merged by time: those that are there, and those that are added."""

import heapq
import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, BinaryIO

from tsctl.logs.following import FollowedLog
from tsctl.logs.lines import moment_of, parse
from tsctl.logs.sources import Line, LogSource, timed

_BLOCK = 64 * 1024  # bytes


def backlog(source: LogSource, count: int | None, since: float | None, end: int | None = None) -> Iterator[Line]:
    """Yield the lines of a log, the oldest first.

    Args:
        count: at least the last so many, if there are; None for all.
        since: only those from then on, in seconds since the epoch; None for all.
        end: the byte at which the newest file is taken to end; None for its end.
    """
    files = _files(source.path)
    if not files or (since is not None and files[0].stat().st_mtime < since):
        return
    texts = _texts(_beginnings(files, source.log, count, since), source.path, end)
    for line in timed(texts, source, files[0].stat().st_mtime):
        if since is None or line.time >= since:
            yield line


def _files(path: Path) -> list[Path]:
    """Return a log's files that exist, the newest first."""
    found = [path] if path.is_file() else []
    number = 1
    while (older := path.with_name(f"{path.name}.{number}")).is_file():
        found.append(older)
        number += 1
    return found


def _beginnings(files: list[Path], log: str, count: int | None, since: float | None) -> list[tuple[Path, int]]:
    """Return the files to read, the oldest first, and the byte at which each is to be begun."""
    chosen = []
    for path in files:
        try:
            file = path.open("rb")
        except FileNotFoundError:  # rotated away meanwhile
            continue
        with file:
            if since is not None:
                begin, over = begin_since(file, log, since)
            else:
                begin, found = begin_of_last(file, count)
                count = None if count is None else count - found
                over = count is not None and count <= 0
        chosen.append((path, begin))
        if over:
            break
    return chosen[::-1]


def begin_of_last(file: BinaryIO, count: int | None) -> tuple[int, int]:
    """Return the byte at which the last `count` lines begin, or 0, and how many lines there are from it on."""
    position = file.seek(0, os.SEEK_END)
    if count is None or not position:
        return 0, 0
    if not count:
        return position, 0
    file.seek(position - 1)
    found = int(file.read(1) != b"\n")  # the line feed at the end begins no line
    while position:
        begin = max(0, position - _BLOCK)
        file.seek(begin)
        block = file.read(position - begin)
        while (at := block.rfind(b"\n")) >= 0:
            if found >= count:
                return begin + at + 1, found
            found += 1
            block = block[:at]
        position = begin
    return 0, found


def begin_since(file: BinaryIO, log: str, since: float) -> tuple[int, bool]:
    """Return a byte at which a line begins, not long before the first since a time; and if earlier ones are there."""
    low, high = 0, file.seek(0, os.SEEK_END)
    first = _time_behind(file, log, 0)
    if first is None or first >= since:
        return 0, False
    while high - low > _BLOCK:
        middle = (low + high) // 2
        moment = _time_behind(file, log, middle)
        if moment is None or moment >= since:
            high = middle
        else:
            low = middle
    file.seek(max(0, low - 1))
    return (low - 1 + len(file.readline()) if low else 0), True


def _time_behind(file: BinaryIO, log: str, position: int) -> float | None:
    """Return the time of the first whole line behind a byte that has one, among the next 64 KiB."""
    file.seek(max(0, position - 1))
    if position:
        file.readline()
    while file.tell() < position + _BLOCK and (line := file.readline()):
        fields = parse(line.decode(errors="replace").rstrip("\n"), log)
        if fields is not None:
            return moment_of(fields["time"])
    return None


def _texts(files: list[tuple[Path, int]], newest: Path, end: int | None) -> Iterator[str]:
    for path, begin in files:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            continue
        with file:
            position = file.seek(begin)
            for line in file:
                position += len(line)
                if path == newest and end is not None and position > end:
                    break
                yield line.removesuffix(b"\n").decode(errors="replace")


POLL = 0.2  # seconds
HOLD = 0.7  # seconds; the daemon writes its access log half a second late (daemon/api/access_log.py)


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

    def hold_lines(self, lines: Iterable[Line], source: int, now: float) -> None:
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
                self._held.hold_lines(lines, number, now)
        for source in self._find():
            if source not in self._logs:
                self._logs[source] = FollowedLog(source.path)
                new = list(backlog(source, None, None, self._logs[source].position))
                self._held.hold_lines(new, len(self._logs), now)
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
