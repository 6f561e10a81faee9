"""The output of a handler: all that it prints and logs goes to the model's log.

Its log records go to stdout as they are, as in TorchServe, until the handler says otherwise, as in a script:
`logging.basicConfig` replaces that, and a record that another handler of `logging` prints is not printed twice.
"""

import contextlib
import io
import logging
import sys
from collections.abc import Iterator
from typing import Any

_basic_config = logging.basicConfig


def log_to_output() -> None:
    """Send a handler's log records to the model's log, line by line, in UTF-8; once a process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
            with contextlib.suppress(OSError):  # it was a file, and is a pipe now: the encoding is set all the same
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if logging.root.handlers:
        return  # of the template that this process is forked from, or of the model that is loaded there
    _basic_config(handlers=[DefaultOutput(sys.stdout)], format="%(message)s", level=logging.INFO)
    logging.basicConfig = basic_config


def basic_config(**settings: Any) -> None:
    """Do as `logging.basicConfig` does in a script, where the root logger has no handler before."""
    root = logging.root
    for each in [each for each in root.handlers if isinstance(each, DefaultOutput)]:
        root.removeHandler(each)
    _basic_config(**settings)


class DefaultOutput(logging.StreamHandler[Any]):
    """Prints the records that no other handler of `logging` prints."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record, unless another handler does."""
        if not any(each is not self and _prints(each, record.levelno) for each in _handlers(record.name)):
            super().emit(record)


def _handlers(name: str) -> Iterator[logging.Handler]:
    """Yield the handlers that get the records of a logger."""
    logger: logging.Logger | None = logging.getLogger(name)
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


def _prints(handler: logging.Handler, level: int) -> bool:
    streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
    return level >= handler.level and isinstance(handler, logging.StreamHandler) and handler.stream in streams
