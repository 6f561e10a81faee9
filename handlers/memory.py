"""Freed memory: a worker's malloc keeps all of it between batches, and none while the worker is idle."""

import contextlib
import ctypes
import os

# mallopt(3). Setting either one ends glibc's own adjustment, so both are set, to the maxima of that adjustment.
_M_TRIM_THRESHOLD, _KEPT = -1, 64 * 2**20
_M_MMAP_THRESHOLD, _LARGE = -3, 32 * 2**20
_THEIRS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_memory() -> None:
    """Keep the memory that a batch frees for the next one, unless the operator has configured malloc.

    By default malloc returns all above 128 KiB to the kernel at once, and fetches it again page by page: 26 µs for a
    body of 100 kB. With this setting, such requests cost 89 µs instead of 119 (`make bench`, "100 kB").
    """
    if not any(name in os.environ for name in _THEIRS):
        with contextlib.suppress(AttributeError):  # not in every libc
            libc = ctypes.CDLL(None)
            libc.mallopt(_M_TRIM_THRESHOLD, _KEPT)
            libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)


def give_memory_back() -> None:
    """Return malloc's free memory, in the arenas of all threads, to the kernel: 100 MiB after a batch of ResNet-152.

    It takes 0.1 to 0.2 ms for each MiB, without the interpreter's lock.
    """
    with contextlib.suppress(AttributeError):  # not in every libc
        ctypes.CDLL(None).malloc_trim(0)
