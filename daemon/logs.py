"""The daemon's logs: its own, and one for what each model's workers print; access.py has the access log.

Under `tsctl start` they go to files in the state directory; under `tsctl run` to stderr as well.
Files are rotated at 100 MB, five are kept.
"""

import logging
import sys
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path

from daemon import paths

MAX_BYTES = 100_000_000
KEPT_FILES = 5

_FORMAT = "%(asctime)s %(levelname)-7s %(message)s"


def _file_handler(path: Path, form: str) -> logging.Handler:
    handler = RotatingFileHandler(path, maxBytes=MAX_BYTES, backupCount=KEPT_FILES, delay=True)
    handler.setFormatter(logging.Formatter(form))
    return handler


def set_up(state_dir: Path, level: str, *, foreground: bool) -> None:
    """Send the logger `daemon` to the state directory, in the foreground to stderr too."""
    paths.logs_dir(state_dir).mkdir(mode=0o700, exist_ok=True)
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # a broken form is the client's to know
    root = logging.getLogger("daemon")
    root.setLevel(level.upper())
    root.propagate = False
    root.handlers = [_file_handler(paths.daemon_log(state_dir), _FORMAT)]
    if foreground:
        shown = logging.StreamHandler(sys.stderr)
        shown.setFormatter(logging.Formatter(_FORMAT))
        root.handlers.append(shown)


class LineLog:
    """Lines for one file, written without a level or a time of its own."""

    def __init__(self, path: Path, foreground: bool) -> None:
        self._handlers: list[logging.Handler] = [_file_handler(path, "%(message)s")]
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
    """The files that take what workers print: one for each model version, opened when it is registered."""

    def __init__(self, state_dir: Path, *, foreground: bool) -> None:
        self._state_dir = state_dir
        self._foreground = foreground
        self._open: dict[tuple[str, str], LineLog] = {}

    def open(self, name: str, version: str) -> Callable[[str], None]:
        """Give the function that writes one line."""
        log = self._open.get((name, version))
        if log is None:
            log = LineLog(paths.model_log(self._state_dir, name, version), self._foreground)
            self._open[name, version] = log
        return log.write

    def close(self, name: str, version: str) -> None:
        log = self._open.pop((name, version), None)
        if log is not None:
            log.close()
