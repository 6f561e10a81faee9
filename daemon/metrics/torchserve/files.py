"""TorchServe's log files: written in batches, in the turn of the loop in which their lines come.

A script that reads ts_metrics.log right after an answer finds its lines, as with TorchServe, and under load many
lines are one write.
"""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from daemon.core.clock import Clock
from daemon.core.layouts.log_format import without_secrets
from daemon.core.layouts.pattern import Entry, Layout
from daemon.core.log_file import LogFile

NAMES = ("access_log", "ts_log", "model_log", "ts_metrics", "model_metrics")
MODE = 0o640  # TorchServe's are for all: a log shipper of the same group reads these
_LINES_AT_ONCE = 1000
_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class LineWriter(Protocol):
    """The receiver of lines: a file."""

    def write(self, level: str, thread: str, logger: str, text: str) -> None: ...


class LayoutFile:
    """A log file whose lines are formatted by a layout."""

    def __init__(self, path: Path, layout: Layout, clock: Clock) -> None:
        with suppress(OSError):  # reported at the first line
            path.parent.mkdir(parents=True, exist_ok=True)
        self._file = LogFile(path, path.stem, as_json=False, mode=MODE)
        self._file.setFormatter(logging.Formatter("%(message)s"))
        with suppress(OSError):
            self._file.stream = self._file._open()  # TorchServe's files are there from the start
        self._layout = layout
        self._clock = clock
        self._lines: list[str] = []

    def write(self, level: str, thread: str, logger: str, text: str) -> None:
        lines = self._lines
        if not lines:
            self._clock.soon(self.flush)
        lines.append(self._layout.line(Entry(time.time(), level, thread, logger, text)))
        if len(lines) >= _LINES_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        if self._lines:
            lines, self._lines = self._lines, []
            self._file.handle(logging.LogRecord("daemon", logging.INFO, "", 0, "\n".join(lines), None, None))

    def close(self) -> None:
        self.flush()
        self._file.close()


class DaemonLines(logging.Handler):
    """Passes the daemon's own log to a file, from any thread."""

    def __init__(self, file: LayoutFile, soon: Callable[[Callable[[], None]], None]) -> None:
        super().__init__()
        self._file = file
        self._soon = soon

    def emit(self, record: logging.LogRecord) -> None:
        level = _LEVELS.get(record.levelname, record.levelname)
        thread = "main" if record.threadName in (None, "MainThread") else record.threadName
        text = without_secrets(self.format(record))
        with suppress(RuntimeError):  # the loop has ended
            self._soon(lambda: self._file.write(level, thread, record.name, text))


class LogFiles:
    """The files that the operator wants, by their names in TorchServe."""

    def __init__(self, targets: Mapping[str, tuple[Path, str]], clock: Clock) -> None:
        self._files = {name: LayoutFile(path, Layout(pattern), clock) for name, (path, pattern) in targets.items()}

    def __contains__(self, name: str) -> bool:
        return name in self._files

    def find(self, name: str) -> LayoutFile | None:
        return self._files.get(name)

    def close(self) -> None:
        for each in self._files.values():
            each.close()
