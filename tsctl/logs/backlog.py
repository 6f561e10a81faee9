"""The last lines of a log, or those since a time, also of its rotated files; no file is read that has none of them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

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
