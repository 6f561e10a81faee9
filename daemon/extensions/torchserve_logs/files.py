"""TorchServe's log files: written in batches, in the turn of the loop in which their lines come.

A script that reads ts_metrics.log right after an answer finds its lines, as with TorchServe, and under load many
lines are one write.
"""

import logging
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.logs import LogFile, without_secrets

_LINES_AT_ONCE = 1000
_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class TorchServeFile:
    """A log file with the lines of TorchServe's log4j2.xml: a time, local and to the millisecond, and what follows.

    Args:
        bare: a line has neither level, thread nor logger.
        time_now: returns seconds since the epoch.
    """

    def __init__(self, path: Path, clock: Clock, *, bare: bool, time_now: Callable[[], float] = time.time) -> None:
        with suppress(OSError):  # reported at the first line
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = LogFile(path, path.stem, as_json=False)
        self._file.setFormatter(logging.Formatter("%(message)s"))
        with suppress(OSError):
            self._file.stream = self._file._open()  # TorchServe's files are there from the start
        self._bare = bare
        self._now = time_now
        self._second, self._stamp = -1, ""
        self._clock = clock
        self._lines: list[str] = []

    def write(self, level: str, thread: str, logger: str, text: str) -> None:
        lines = self._lines
        if not lines:
            self._clock.soon(self.flush)
        origin = "" if self._bare else f" [{level:5}] {thread} {logger}"
        lines.append(f"{self._time()}{origin} - {text}")
        if len(lines) >= _LINES_AT_ONCE:
            self.flush()

    def _time(self) -> str:
        now = self._now()
        second = int(now)
        if second != self._second:  # once a second: it costs more than the rest of the line
            self._second, self._stamp = second, time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(second))
        return f"{self._stamp},{int((now - second) * 1000):03}"

    def flush(self) -> None:
        if self._lines:
            lines, self._lines = self._lines, []
            self._file.handle(logging.LogRecord("daemon", logging.INFO, "", 0, "\n".join(lines), None, None))

    def close(self) -> None:
        self.flush()
        self._file.close()


class DaemonLines(logging.Handler):
    """Passes the daemon's own log to a file, from any thread: lines are written on the event loop, or by `close`."""

    def __init__(self, file: TorchServeFile, soon: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._file = file
        self._soon = soon
        self._waiting: deque[tuple[str, str, str, str]] = deque()

    def emit(self, record: logging.LogRecord) -> None:
        level = _LEVELS.get(record.levelname, record.levelname)
        thread = "main" if record.threadName in (None, "MainThread") else record.threadName
        text = without_secrets(self.format(record))
        self._waiting.append((level, thread, record.name, text))
        with suppress(RuntimeError):  # the loop has ended
            self._soon(self._write)

    def close(self) -> None:
        self._write()
        super().close()

    def _write(self) -> None:
        while self._waiting:
            self._file.write(*self._waiting.popleft())
