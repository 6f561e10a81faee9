"""The notes of each answered request, over HTTP and gRPC: counters, and the access log, a line for each.

Lines are written in batches.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.logs import LineLog, stamp_of, without_secrets
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.http.messages import Request
from tsctl.daemon.metrics.metrics import Metrics

FLUSH_EVERY: Final = 0.5  # seconds
_LINES_AT_ONCE: Final = 250  # in JSON 60 kB, which stay in the cache: of 1 000, a line costs half as much again
_encode = msgspec.json.Encoder().encode


_MS: Final = ["%.1f" % (tenths / 10) for tenths in range(1000)]
_MOST_PLAIN, _LONGEST_PLAIN = 1024, 512  # targets, and characters of each
_plain: set[str] = set()  # targets that appear in a line as they are: with few models, those of nearly all requests


class AccessEntry(msgspec.Struct):
    """A line in JSON. As a struct it is encoded in 0.8 µs, as a dictionary in 1.3.

    Attributes:
        ms: from the request's receipt to its answer.
        requestBytes: the size of the body as announced; None for one in chunks.
        request: the id.
    """

    time: str
    level: str
    log: str
    client: str
    method: str
    path: str
    status: int
    ms: float
    requestBytes: int | None  # noqa: N815 - the name in JSON
    request: str


class AccessLog:
    """A log that writes its lines after at most `FLUSH_EVERY` seconds, or when 250 are waiting."""

    def __init__(self, path: Path, clock: Clock, *, foreground: bool, as_json: bool = False) -> None:
        self._log = LineLog(path, "access", foreground=foreground, as_json=as_json)
        self._clock = clock
        self._as_json = as_json
        self._lines: list[str] = []
        self._due = False  # a call of `_flush_late` is due: one, or they would multiply, and each write few lines
        self._stamped = -1  # the second of `_stamp`
        self._stamp = ""
        self._offset = ""
        self._rests: list[str] = []  # of the stamp, for each millisecond: `.123+01:00`

    def note(self, request: Request, status: int, seconds: float) -> None:
        """Add the line of a request; `seconds` is the time from its receipt to its answer."""
        moment = time.time()
        now = int(moment)
        if now != self._stamped:  # once a second: it costs more (4 µs) than the rest of the line
            self._begin_second(now)
        stamp = self._stamp + self._rests[int((moment - now) * 1000)]
        if self._as_json:
            self.add_line(json_line_of(request, status, seconds, stamp))
        else:
            self.add_line(line_of(request, status, seconds, stamp))

    def _begin_second(self, now: int) -> None:
        stamp = stamp_of(now)
        self._stamped, self._stamp = now, stamp[:19]
        if stamp[23:] != self._offset:
            self._offset = stamp[23:]
            self._rests = [".%03d%s" % (each, self._offset) for each in range(1000)]  # noqa: UP031

    def add_line(self, line: str) -> None:
        lines = self._lines
        lines.append(line)
        if len(lines) >= _LINES_AT_ONCE:
            self.flush()
        elif not self._due:
            self._due = True
            self._clock.later(FLUSH_EVERY, self._flush_late)

    def _flush_late(self) -> None:
        self._due = False
        self.flush()

    def flush(self) -> None:
        if self._lines:
            self._log.write("\n".join(self._lines))
            self._lines = []

    def close(self) -> None:
        """Write the remaining lines and close the file; no line may be added afterwards."""
        self.flush()
        self._log.close()


def line_of(request: Request, status: int, seconds: float, stamp: str) -> str:
    """Return the log line of a request; unprintable characters of the target, which clients choose, are escaped."""
    target = request.target
    if target not in _plain and not _is_plain(target):
        target = without_secrets(target)
        if not target.isprintable():
            target = ascii(target)[1:-1]
    # An f-string of words alone: compiled, % costs twice as much, and a format in it 1 µs more.
    ms = _milliseconds(seconds)
    return f'{stamp} {request.peer} "{request.method} {target}" {status} {ms}ms {request.id}'


def _is_plain(target: str) -> bool:
    """Return whether a target appears in both kinds of lines as it is; such a one is remembered."""
    if len(target) > _LONGEST_PLAIN:
        return False
    if not target.isprintable() or "http" in target.lower() or '"' in target or "\\" in target:
        return False
    if len(_plain) >= _MOST_PLAIN:
        _plain.clear()
    _plain.add(target)
    return True


def _milliseconds(seconds: float) -> str:
    tenths = int(seconds * 10_000 + 0.5)
    return _MS[tenths] if 0 <= tenths < 1000 else "%.1f" % (seconds * 1000)


def json_line_of(request: Request, status: int, seconds: float, stamp: str) -> str:
    target, chosen = request.target, request.id  # by the client; the other words are the daemon's
    size = announced(request.headers)
    if (target in _plain or _is_plain(target)) and (chosen.isalnum() or (chosen.isprintable() and _is_bare(chosen))):
        ms, shown = _milliseconds(seconds), "null" if size is None else str(size)
        return (
            f'{{"time":"{stamp}","level":"info","log":"access","client":"{request.peer}","method":"{request.method}",'
            f'"path":"{target}","status":{status},"ms":{ms},"requestBytes":{shown},"request":"{chosen}"}}'
        )
    entry = AccessEntry(
        stamp,
        "info",
        "access",
        request.peer,
        request.method,
        without_secrets(target),
        status,
        round(seconds * 1000, 1),
        size,
        chosen,
    )
    return _encode(entry).decode()


def _is_bare(text: str) -> bool:
    return '"' not in text and "\\" not in text


def announced(headers: Sequence[tuple[str, str]]) -> int | None:
    """Return the size of a body as the request's headers announce it; 0 without one, None for one in chunks."""
    for name, value in headers:  # compiled, comparing lengths first costs a quarter of `Request.header`
        if len(name) == 14 and name.lower() == "content-length":
            return int(value.lstrip("0") or "0") if value.isdecimal() else 0  # `int` raises for thousands of zeros
        if len(name) == 17 and name.lower() == "transfer-encoding":
            return None
    return 0


class AnsweredRequests:
    """Notes answered requests. A class, because it is compiled: as a function it costs 1 % of a request.

    Args:
        lines: None to write none.

    Attributes:
        copy: called with each answered request, its status and its seconds; None for nothing.
    """

    def __init__(
        self,
        metrics: Metrics,
        recurring: Recurring,
        lines: AccessLog | None = None,
    ) -> None:
        self._metrics = metrics
        self._recurring = recurring
        self._lines = lines
        self.copy: Callable[[Request, int, float], None] | None = None

    def note(self, request: Request, status: int, seconds: float) -> None:
        """Note a request; `seconds` is the time from its receipt to its answer."""
        self._metrics.answered(status)
        if request.client is not None:
            self._metrics.answered_to(request.client.name, status)
        if status == 413:
            text = "a request was larger than its address allows (413)"
            self._recurring.note("limit", text, request=request.id)
        if self._lines is not None:
            self._lines.note(request, status, seconds)
        if self.copy is not None:
            self.copy(request, status, seconds)
