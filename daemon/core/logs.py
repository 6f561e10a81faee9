"""The daemon's logs: its own, and one for the output of each model's workers; api/access_log.py has the access log.

Under `tsctl start` they go to files in the state directory; under `tsctl run` to stderr as well.
Files are rotated at 100 MB, five are kept. Their lines are text, or one JSON object each:

    text   2026-01-31T12:00:00.123+01:00 INFO    listening on …                        daemon
           2026-01-31T12:00:00.123+01:00 4711 stdout loading weights                   a worker's output
           2026-01-31T12:00:00.123+01:00 127.0.0.1:5000 "POST /predictions/m" 200 …    access (api/access_log.py)
    JSON   {"time": …, "level": …, "log": "daemon" | "model" | "access", …, "text": …}

Times are local, in ISO 8601 with milliseconds and offset. Where stderr is systemd's journal, its lines begin with their
priority (`sd-daemon(3)`), which the journal takes away again.
"""

import contextlib
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any, Literal

import msgspec

# A URL as it is, or within another: scheme, user, host and path, and query.
_URL = re.compile(
    r"(https?(?::|%3A)(?:/|%2F){2})(?:[^\s/?&]*?(?:@|%40))?((?:[^\s?&%]|%(?!3F))*)((?:\?|%3F)\S*)?", re.IGNORECASE
)
_PRIORITIES = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}
_encode = msgspec.json.Encoder().encode


def without_secrets(text: str) -> str:
    """Remove secrets from the URLs in a text: name and password, and the query, which holds signatures."""
    if "http" not in text.lower():
        return text
    return _URL.sub(lambda url: f"{url[1]}{url[2]}{'?…' if url[3] else ''}", text)


def stamp_of(moment: float) -> str:
    """Return a moment, in seconds since the epoch, as local time: `2026-01-31T12:00:00.123+01:00`."""
    return datetime.fromtimestamp(moment).astimezone().isoformat(timespec="milliseconds")


def json_of(value: Mapping[str, Any] | str) -> str:
    """Return one line of JSON; text that is no Unicode, such as a file's name, is escaped."""
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value)


def is_journal(descriptor: int, environment: Mapping[str, str]) -> bool:
    """Return whether a descriptor is the stream to systemd's journal that JOURNAL_STREAM names, as DEVICE:INODE."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return environment.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"


class DaemonFormat(logging.Formatter):
    """The daemon's own lines; `fields` of a record (`extra`) are further fields of its JSON."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        text = without_secrets(text)
        stamp, level = stamp_of(record.created), record.levelname
        if not self._as_json:
            return f"{stamp} {level:7} {text}"
        fields = {"time": stamp, "level": level.lower(), "log": "daemon", "logger": record.name, "text": text}
        return json_of(fields | getattr(record, "fields", {}))


class JournalFormat(logging.Formatter):
    """The lines of another format, each with its priority for systemd's journal."""

    def __init__(self, lines: logging.Formatter) -> None:
        super().__init__()
        self._lines = lines

    def format(self, record: logging.LogRecord) -> str:
        priority = f"<{_PRIORITIES.get(record.levelno, 6)}>"
        return priority + self._lines.format(record).replace("\n", f"\n{priority}")


class OutputFormat:
    """The lines of the output of one model version's workers."""

    def __init__(self, model: str, version: str, *, as_json: bool) -> None:
        self._model = model
        self._version = version
        self._as_json = as_json

    def lines(self, text: str, pid: int, stream: str, moment: float, *, named: bool = False) -> str:
        """Return the lines of the log for lines that a worker has written.

        Args:
            text: one or more lines, without the last line feed.
            stream: `stdout`, `stderr`, or `daemon` for a remark about the output.
            moment: when they came, in seconds since the epoch.
            named: name the model, among the lines of others.
        """
        stamp = stamp_of(moment)
        if not self._as_json:
            about = f"{self._model}/{self._version} " if named else ""
            prefix = f"{stamp} {about}{pid} {stream} "
            return prefix + text.replace("\n", f"\n{prefix}")
        fields = {
            "time": stamp, "level": "warning" if stream == "daemon" else "info", "log": "model", "model": self._model,
            "version": self._version, "pid": pid, "stream": stream, "text": "",
        }  # fmt: skip
        found = []
        for line in text.split("\n"):
            fields["text"] = line
            found.append(json_of(fields))
        return "\n".join(found)


MAX_BYTES = 100_000_000
KEPT_FILES = 5
TELL_EVERY = 60.0  # seconds, on stderr

_losses: list[Callable[[str], None]] = []


def report_losses(tell: Callable[[str], None]) -> None:
    """Call `tell` with a sentence, in the thread that logs, when a file begins to lose its lines."""
    _losses[:] = [tell]


class LogFile(RotatingFileHandler):
    """A log file: private, rotated, in UTF-8 whatever the locale; and which may fail.

    A file that cannot be written, say because the disk is full, loses its lines and nothing else. That is reported
    once, and when it can be written again, a line there tells how many are missing. Each entry is an attempt.

    Args:
        log: `daemon`, `access` or `model`.
    """

    def __init__(self, path: Path, log: str, *, as_json: bool) -> None:
        super().__init__(
            path, maxBytes=MAX_BYTES, backupCount=KEPT_FILES, encoding="utf-8", delay=True, errors="backslashreplace"
        )
        self._log = log
        self._as_json = as_json
        self._lost = 0  # lines that could not be written
        self._failed = False
        self._told_until = 0.0  # on stderr, on the monotonic clock

    def _open(self) -> TextIOWrapper:
        # 0600, because a line may hold a client's data.
        descriptor = os.open(self.baseFilename, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        stream = TextIOWrapper(open(descriptor, "ab"), encoding=self.encoding, errors=self.errors)
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":  # torn, by a full disk or a crash
            stream.write("\n")
        return stream

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 - the name in logging
        """Return whether the file is full, by the record's message.

        The library formats the record for that, and once more to write it: an entry of the access log has up to 60 kB.
        """
        if self.stream is None:
            self.stream = self._open()
        self.stream.seek(0, os.SEEK_END)  # another daemon may write there, during an upgrade
        return self.stream.tell() + len(record.getMessage()) >= self.maxBytes

    def format(self, record: logging.LogRecord) -> str:
        lines = super().format(record)
        return f"{self._remark(record.created)}\n{lines}" if self._lost else lines

    def emit(self, record: logging.LogRecord) -> None:
        self._failed = False
        super().emit(record)
        if not self._failed:
            self._lost = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name in logging
        error = sys.exception()
        if not isinstance(error, OSError):  # a bug in the logging call
            super().handleError(record)
            return
        self._failed = True
        with contextlib.suppress(OSError):  # its buffer has the bytes that the disk did not take
            if self.stream is not None:
                self.stream.close()
        self.stream = None  # to be opened again
        began = not self._lost
        self._lost += record.getMessage().count("\n") + 1
        if began:
            sentence = f"cannot write `{self.baseFilename}`: {error.strerror}; its lines are lost"
            if time.monotonic() >= self._told_until:  # a disk may be full, and not, a thousand times a second
                self._told_until = time.monotonic() + TELL_EVERY
                with contextlib.suppress(OSError):
                    sys.stderr.write(f"{sentence}\n")
                    sys.stderr.flush()
            for tell in _losses:
                tell(sentence)

    def _remark(self, moment: float) -> str:
        lines = "1 line" if self._lost == 1 else f"{self._lost} lines"
        stamp, text = stamp_of(moment), f"({lines} could not be written here)"
        if not self._as_json:
            return f"{stamp} WARNING {text}"
        return json_of({"time": stamp, "level": "warning", "log": self._log, "text": text})


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
        copy: OutputLog | None,
        *,
        foreground: bool,
        plain: bool,
        as_json: bool,
    ) -> None:
        self._file = LineLog(path, "model", foreground=foreground, as_json=as_json)
        self._form = form
        self._copy = copy
        self._foreground = foreground
        self._plain = plain

    def write(self, text: str, pid: int, stream: str) -> None:
        now, shown = time.time(), None
        if self._foreground:
            shown = text if self._plain else self._form.lines(text, pid, stream, now, named=True)
        self._file.write(self._form.lines(text, pid, stream, now), shown)
        if self._copy is not None:
            self._copy(text, pid, stream)

    def close(self) -> None:
        self._file.close()


class ModelLogs:
    """The log files of the workers' output: one for each model version, opened at its registration.

    Args:
        file_of: a model's name and version → the path of its file.
        plain: the foreground gets the bare output.

    Attributes:
        copy_of: called with the name and version of each log that is opened; what it returns gets a copy of all that is
            written there, with the pid of its process and the stream.
    """

    def __init__(
        self,
        file_of: Callable[[str, str], Path],
        *,
        foreground: bool,
        plain: bool = False,
        as_json: bool = False,
    ) -> None:
        self.copy_of: Callable[[str, str], OutputLog | None] = lambda name, version: None
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
            copy = self.copy_of(name, version)
            log = _ModelLog(path, form, copy, foreground=self._foreground, plain=self._plain, as_json=self._as_json)
            self._open[name, version] = log
        return log.write

    def close(self, name: str, version: str) -> None:
        log = self._open.pop((name, version), None)
        if log is not None:
            log.close()
