"""The daemon's logs: its own, and one for the output of each model's workers; http/access_log.py has the access log.

Under `tsctl start` they go to files in the state directory; under `tsctl run` to stderr as well.
Files are rotated at 100 MB, five are kept (log_file.py); log_format.py has their lines.
"""

import logging
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from tsctl.daemon.core.log_file import LogFile, report_losses
from tsctl.daemon.core.texts.log_format import DaemonFormat, JournalFormat, OutputFormat, is_journal, without_secrets

__all__ = ["LineLog", "ModelLogs", "OutputLog", "report_losses", "set_up", "without_secrets"]

OutputLog = Callable[[str, int, str], None]
"""Takes one or more lines of a worker, without the last line feed; the process id; and the stream."""


def _shown(lines: logging.Formatter) -> logging.Handler:
    """Return the handler of stderr, which may be systemd's journal."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JournalFormat(lines) if _stderr_is_journal() else lines)
    return handler


def _stderr_is_journal() -> bool:
    try:
        return is_journal(sys.stderr.fileno(), os.environ)
    except OSError:  # a stream without a descriptor
        return False


def set_up(file: Path, level: str, *, foreground: bool, as_json: bool = False) -> None:
    """Send the loggers `tsctl.daemon` and `asyncio` (the loop's errors) to a file, in the foreground to stderr too."""
    root = logging.getLogger("tsctl.daemon")
    root.setLevel(level.upper())
    root.propagate = False
    lines, written = DaemonFormat(as_json=as_json), LogFile(file, "daemon", as_json=as_json)
    written.setFormatter(lines)
    root.handlers = [written, _shown(lines)] if foreground else [written]
    loop = logging.getLogger("asyncio")
    loop.propagate = False
    loop.handlers = root.handlers


class LineLog:
    """A file of lines that are formatted already, and in the foreground stderr too."""

    def __init__(self, path: Path, log: Literal["access", "model"], *, foreground: bool, as_json: bool = False) -> None:
        plain = logging.Formatter("%(message)s")
        self._file = LogFile(path, log, as_json=as_json)
        self._file.setFormatter(plain)
        self._shown = _shown(plain) if foreground else None

    def write(self, text: str, shown: str | None = None) -> None:
        """Write lines, without the last line feed.

        Args:
            shown: the lines for stderr, if they are others.
        """
        self._file.handle(_record(text))
        if self._shown is not None:
            self._shown.handle(_record(text if shown is None else shown))

    def close(self) -> None:
        self._file.close()
        if self._shown is not None:
            self._shown.close()


def _record(text: str) -> logging.LogRecord:
    return logging.LogRecord("daemon", logging.INFO, "", 0, text, None, None)


class _ModelLog:
    """The log of one version's workers."""

    def __init__(
        self,
        path: Path,
        form: OutputFormat,
        copies: Sequence[OutputLog],
        *,
        foreground: bool,
        plain: bool,
        as_json: bool,
    ) -> None:
        self._file = LineLog(path, "model", foreground=foreground, as_json=as_json)
        self._form = form
        self._copies = copies
        self._foreground = foreground
        self._plain = plain

    def write(self, text: str, pid: int, stream: str) -> None:
        now, shown = time.time(), None
        if self._foreground:
            shown = text if self._plain else self._form.lines(text, pid, stream, now, named=True)
        self._file.write(self._form.lines(text, pid, stream, now), shown)
        for copy in self._copies:
            copy(text, pid, stream)

    def close(self) -> None:
        self._file.close()


class ModelLogs:
    """The log files of the workers' output: one for each model version, opened at its registration.

    Args:
        file_of: a model's name and version → the path of its file.
        plain: the foreground gets the bare output.

    Attributes:
        copies: a model's name and version → the receiver of a copy of its workers' output.
    """

    def __init__(
        self,
        file_of: Callable[[str, str], Path],
        *,
        foreground: bool,
        plain: bool = False,
        as_json: bool = False,
    ) -> None:
        self.copies: Sequence[Callable[[str, str], OutputLog]] = ()
        self._file_of = file_of
        self._foreground = foreground
        self._plain = plain
        self._as_json = as_json
        self._open: dict[tuple[str, str], _ModelLog] = {}

    def open(self, name: str, version: str) -> OutputLog:
        """Return the function that writes the output of the version's workers."""
        log = self._open.get((name, version))
        if log is None:
            form, path = OutputFormat(name, version, as_json=self._as_json), self._file_of(name, version)
            copies = [copy(name, version) for copy in self.copies]
            log = _ModelLog(path, form, copies, foreground=self._foreground, plain=self._plain, as_json=self._as_json)
            self._open[name, version] = log
        return log.write

    def close(self, name: str, version: str) -> None:
        log = self._open.pop((name, version), None)
        if log is not None:
            log.close()
