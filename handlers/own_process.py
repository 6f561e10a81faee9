"""The process of a worker itself: its end with its parent, its cgroup, its priority and its output.

The lowest priority, for one that runs only where no other wants the core: SCHED_IDLE (sched(7)) does that among the
threads of one scheduling group. With autogroups (`sched_autogroup_enabled`, the usual case without a cgroup for each
service) every session is a group of its own, and groups share the cores alike, whatever their threads are: then the
group has to step back, too.

Output: all that a handler prints and logs goes to the model's log. Its log records go to stdout as they are, as in
TorchServe, until the handler says otherwise, as in a script: `logging.basicConfig` replaces that, and a record that
another handler of `logging` prints is not printed twice.
"""

import contextlib
import ctypes
import io
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1  # prctl(2)


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent dies, even in the middle of a batch."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # the parent died before the call
        os._exit(0)


def enter_group(directory: str) -> None:
    """Enter a cgroup, including all future children of this process; ignore a failure."""
    if directory:
        with contextlib.suppress(OSError), open(f"{directory}/cgroup.procs", "w") as file:
            file.write("0")


BACKGROUND = "TSWORKER_BACKGROUND"  # in the environment of workers that run beside those that serve
_LOWEST = "19"  # as nice(1)


def step_back(autogroup: Path = Path("/proc/self/autogroup")) -> None:
    """Lower the priority of this process, and of all that it starts; and that of its session, if it leads one."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.getsid(0) == os.getpid():  # else the others of the session would step back, too
        with contextlib.suppress(OSError):  # without autogroups there is no such file
            autogroup.write_text(_LOWEST)


def step_back_if_asked() -> None:
    """Step back if the environment says so."""
    if os.environ.get(BACKGROUND):
        step_back()


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
