"""The daemon's logs: its own, and one for the output of each model's workers; http/access_log.py has the access log.

Under `tsctl start` they go to files in the state directory; under `tsctl run` to stderr as well.
Files are rotated at 100 MB, five are kept. A file that cannot be written, say because the disk is full, loses
its lines and nothing else: that is reported once, on stderr, and in the file when it can be written again.
"""

import contextlib
import logging
import os
import re
import sys
from collections.abc import Callable
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

MAX_BYTES = 100_000_000
KEPT_FILES = 5

# A URL as it is, or within another: scheme, user, host and path, and query.
_URL = re.compile(
    r"(https?(?::|%3A)(?:/|%2F){2})(?:[^\s/?&]*?(?:@|%40))?((?:[^\s?&%]|%(?!3F))*)((?:\?|%3F)\S*)?", re.IGNORECASE
)

_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"

_losses: list[Callable[[str], None]] = []


def report_losses(tell: Callable[[str], None]) -> None:
    """Call `tell` with a sentence, in the thread that logs, when a file begins to lose its lines."""
    _losses[:] = [tell]


def without_secrets(text: str) -> str:
    """Remove secrets from the URLs in a text: name and password, and the query, which holds signatures."""
    if "http" not in text:
        return text
    return _URL.sub(lambda url: f"{url[1]}{url[2]}{'?…' if url[3] else ''}", text)


class _Discreet(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name in logging
        return without_secrets(super().formatMessage(record))


class _File(RotatingFileHandler):
    """A log file that may fail, and is retried for each record."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lost = 0  # records that could not be written
        self._failed = False

    def _open(self) -> TextIOWrapper:
        # 0600, whatever the umask: a line may hold a client's data.
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        return TextIOWrapper(open(descriptor, "ab"), encoding=self.encoding or "utf-8", errors=self.errors)

    def emit(self, record: logging.LogRecord) -> None:
        self._failed = False
        super().emit(record)
        if self._lost and not self._failed:
            lost, self._lost = self._lost, 0
            text = f"(before this, {lost} entries could not be written)"
            super().emit(logging.LogRecord(record.name, logging.WARNING, "", 0, text, None, None))

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
        self._lost += 1
        if self._lost == 1:
            sentence = f"cannot write `{self.baseFilename}`: {error.strerror}; its lines are lost"
            with contextlib.suppress(OSError):
                sys.stderr.write(f"{sentence}\n")
                sys.stderr.flush()
            for tell in _losses:
                tell(sentence)


def _file_handler(path: Path, form: str | None = None) -> logging.Handler:
    """Return the handler of a file; without a form its lines stay as they are."""
    handler = _File(path, maxBytes=MAX_BYTES, backupCount=KEPT_FILES, delay=True)
    handler.setFormatter(logging.Formatter("%(message)s") if form is None else _Discreet(form))
    return handler


def set_up(file: Path, level: str, *, foreground: bool) -> None:
    """Send the logger `daemon` to a file, in the foreground to stderr too."""
    root = logging.getLogger("daemon")
    root.setLevel(level.upper())
    root.propagate = False
    root.handlers = [_file_handler(file, _FORMAT)]
    if foreground:
        shown = logging.StreamHandler(sys.stderr)
        shown.setFormatter(_Discreet(_FORMAT))
        root.handlers.append(shown)


class LineLog:
    """Lines for one file, written without an additional level or time."""

    def __init__(self, path: Path, foreground: bool) -> None:
        self._handlers: list[logging.Handler] = [_file_handler(path)]
        if foreground:
            self._handlers.append(logging.StreamHandler(sys.stderr))

    def write(self, text: str) -> None:
        record = logging.LogRecord("daemon", logging.INFO, "", 0, text, None, None)
        for handler in self._handlers:
            handler.handle(record)

    def close(self) -> None:
        for handler in self._handlers:
            handler.close()


class ModelLogs:
    """The log files of the workers' output: one for each model version, opened at its registration.

    Args:
        file_of: a model's name and version → the path of its file.
    """

    def __init__(self, file_of: Callable[[str, str], Path], *, foreground: bool) -> None:
        self._file_of = file_of
        self._foreground = foreground
        self._open: dict[tuple[str, str], LineLog] = {}

    def open(self, name: str, version: str) -> Callable[[str], None]:
        """Return the function that writes one or more lines, without the last line feed."""
        log = self._open.get((name, version))
        if log is None:
            log = LineLog(self._file_of(name, version), self._foreground)
            self._open[name, version] = log
        return log.write

    def close(self, name: str, version: str) -> None:
        log = self._open.pop((name, version), None)
        if log is not None:
            log.close()
