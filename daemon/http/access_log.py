"""The access log: a line for each request, written in batches."""

import time
from pathlib import Path

from daemon.core.clock import Clock
from daemon.core.logs import LineLog, without_secrets
from daemon.http.messages import Request

FLUSH_EVERY = 0.5  # seconds
_LINES_AT_ONCE = 1000


class AccessLog:
    """A log that writes its lines after at most `FLUSH_EVERY` seconds, or when 1 000 are waiting."""

    def __init__(self, path: Path, clock: Clock, *, foreground: bool) -> None:
        self._log = LineLog(path, foreground)
        self._clock = clock
        self._lines: list[str] = []
        self._stamped = -1  # the second of `_stamp`
        self._stamp = ""

    def note(self, request: Request, status: int, seconds: float) -> None:
        """Add the line of a request; `seconds` is the time from its receipt to its answer."""
        now = int(time.time())
        if now != self._stamped:  # once a second: strftime costs more (1 µs) than the rest of the line
            self._stamped, self._stamp = now, time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(now))
        self.add(line_of(request, status, seconds, self._stamp))

    def add(self, line: str) -> None:
        lines = self._lines
        if not lines:
            self._clock.later(FLUSH_EVERY, self.flush)
        lines.append(line)
        if len(lines) >= _LINES_AT_ONCE:
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
    """Return the log line of a request; unprintable characters, which clients choose, are escaped."""
    target = without_secrets(request.target) if "url=http" in request.target else request.target
    # % instead of an f-string: compiled, an f-string with formats costs 1 µs more.
    words = (stamp, request.peer, request.method, target, status, seconds * 1000, request.id)
    line = '%s %s "%s %s" %d %.1fms %s' % words  # noqa: UP031
    return line if line.isprintable() else ascii(line)[1:-1]
