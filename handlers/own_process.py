"""The process of a worker itself: its end with its parent, its cgroup, its memory, its priority and its output.

Freed memory: malloc keeps all of it between batches, and none while the worker is idle. By default glibc maps each
block of over 32 MiB anew, and returns the end of its heap; the kernel then zeroes page after page. With the settings
here no block is mapped, and nothing returned, because of its size: what a worker holds is the peak of its model's own
batches. Nor is there a cache of small blocks for each thread (tcache): torch aligns tensors, which leaves splinters
between them; that cache holds these, and the hole between two of them is too short for the tensor that was freed there.
With the cache two tensors in turns took a heap of 4 to 5 times their size, and two of 1.5 GiB 12.4 GiB; without it of
their size (tests/handlers/test_memory.py). Doing without it costs 2 % of a model of 40 tiny operations.

`python -m tests.lab heap` (one thread): page faults of a batch, CPU ms of a request, peak in MiB.

                            EfficientNet-Lite0 in 32s    in 8s                  MiniLM in 32s
    glibc's defaults        699 802   81.5   1 515       97 177   78.3     917  66 393   48.1   1 005
    thresholds of 32 MiB    582 451   71.1   1 483       41 179   53.7     955  67 358   48.4     988
    thresholds of 1 GiB           0   33.8   1 808          784   30.9   1 007      42   44.6     989
    these settings                0   30.0   1 480            0   32.5     925       5   44.0     962

Lite0 in batches of 1 to 32 in turns: 5 881 faults and 1 447 MiB; 297 378 and 1 768 by the defaults, 29 432 and 2 691 by
thresholds of 1 GiB. In ones it takes 4 569 faults and 39 ms by the defaults, hardly a fault and 28 to 33 ms by
each of the others; of MiniLM in ones, and of Resemblyzer in any size (8 ms, 0.8 GiB), the four are alike. torchcrepe
in 8s takes 869 ms a request, 919 by the defaults, and peaks 7 % higher: 1 320 MiB.

What is kept goes back to the kernel when a model has loaded, in the first pause, and every ten minutes without one.
Programs that a handler starts inherit the settings. Not kept: blocks of over 64 MiB on other threads than the first,
the size of glibc's heaps for these.

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
from collections.abc import Iterator, Mapping
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


# Fast bins hold splinters, too. Names that a glibc does not know are ignored, as is all of this by musl.
_TUNABLES = {"mmap_max": 0, "trim_threshold": 2**63 - 1, "tcache_count": 0, "mxfast": 0}
_THEIRS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_", "GLIBC_TUNABLES")


def malloc_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable that a worker's process must begin with; none if the operator has configured malloc."""
    if any(name in environment for name in _THEIRS):
        return {}
    return {"GLIBC_TUNABLES": ":".join(f"glibc.malloc.{name}={value}" for name, value in _TUNABLES.items())}


def give_memory_back() -> None:
    """Return malloc's free memory, in the arenas of all threads, to the kernel: 100 MiB after a batch of ResNet-152.

    It takes 0.1 to 0.2 ms for each MiB, without the interpreter's lock.
    """
    with contextlib.suppress(AttributeError):  # not in every libc
        ctypes.CDLL(None).malloc_trim(0)


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
