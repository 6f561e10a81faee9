"""A log file: private, rotated, in UTF-8 whatever the locale; and which may fail.

A file that cannot be written, say because the disk is full, loses its lines and nothing else. That is reported once,
and when it can be written again, a line there tells how many are missing. Each entry is an attempt.
"""

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from tsctl.daemon.core.texts.log_format import json_of, stamp_of

MAX_BYTES = 100_000_000
KEPT_FILES = 5
TELL_EVERY = 60.0  # seconds, on stderr

_losses: list[Callable[[str], None]] = []


def report_losses(tell: Callable[[str], None]) -> None:
    """Call `tell` with a sentence, in the thread that logs, when a file begins to lose its lines."""
    _losses[:] = [tell]


class LogFile(RotatingFileHandler):
    """A log file that may fail, and is retried for each entry.

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
