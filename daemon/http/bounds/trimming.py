"""The daemon gives the memory of a large body back at once; where gRPC is served, when such messages have stopped.

By default glibc takes blocks of up to 32 MiB from its heap once such a block was freed, and a heap full of bodies has
holes: a thousand clients that upload 10 MB each made it 900 MiB instead of 660. So a block of a MiB or more is memory
of its own.

Over gRPC the library copies each message, and the kernel clears each page that it hands out: 0.6 ms a MiB,
of the event loop's time. By default glibc gives a large block back when it is freed, and what is free at the end of its
heap, so that each message was copied into fresh pages; but it keeps what other threads free, each in a heap of its own.
So there is one heap, whose free memory is kept, up to 256 MiB of it beside what the budgets allow:

    gRPC messages of 5 MiB     2 ms instead of 9 ms in a callback
    of 64 MiB                  16 to 25 ms instead of 70 to 110 ms; at most 270 MiB instead of 227, 77 MiB afterwards
"""

import contextlib
import ctypes
import os
from collections.abc import Callable, Mapping
from typing import Any

from tsctl.daemon.core.clock import Clock

MUCH = 16 * 1024 * 1024  # bytes of messages
QUIET = 5.0  # seconds
MIB = 2**20
# mallopt(3): a heap for all threads; blocks of the largest messages come from it, and its end is free memory.
# A message over gRPC is there up to four times: as it came, in pieces, whole, and parsed.
_KEPT = {-8: 1, -3: 80 * MIB, -1: 256 * MIB}  # M_ARENA_MAX; M_MMAP_THRESHOLD; M_TRIM_THRESHOLD
_RETURNED = {-3: MIB}
_THEIRS = ("MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES")


def return_memory(environment: Mapping[str, str] = os.environ, libc: Any = None) -> None:
    """Return large blocks to the system at once, unless the operator has configured malloc."""
    _set(_RETURNED, environment, libc)


def keep_memory(environment: Mapping[str, str] = os.environ, libc: Any = None) -> None:
    """Keep freed memory in one heap, unless the operator has configured malloc. Call it before threads are started."""
    _set(_KEPT, environment, libc)


def _set(parameters: Mapping[int, int], environment: Mapping[str, str], libc: Any) -> None:
    if not any(name in environment for name in _THEIRS):
        with contextlib.suppress(AttributeError):  # not in every libc
            mallopt = (libc or ctypes.CDLL(None)).mallopt
            for parameter, value in parameters.items():
                mallopt(parameter, value)


class Trimming:
    """Trims the heap when large messages have stopped coming.

    Args:
        trim: runs in another thread.
    """

    def __init__(self, clock: Clock, trim: Callable[[], None] | None = None) -> None:
        self._clock = clock
        self._trim = trim or _trim
        self._seen = 0  # bytes since the last trim
        self._counted = 0  # of them, when the timer was set
        self._waits = False

    def note(self, size: int) -> None:
        self._seen += size
        if self._seen >= MUCH and not self._waits:
            self._wait()

    def _wait(self) -> None:
        self._waits = True
        self._counted = self._seen
        self._clock.later(QUIET, self._look)

    def _look(self) -> None:
        if self._seen - self._counted >= MUCH:  # they still come, and would take the memory again
            self._wait()
            return
        self._seen, self._waits = 0, False
        self._clock.aside(self._trim, lambda done: None)


def _trim() -> None:
    """Return free pages to the system: 15 ms for 130 MiB, without the interpreter's lock, but with malloc's."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)
