"""Freed memory: a worker's malloc keeps all of it between batches, and none while the worker is idle."""

import contextlib
import ctypes
import os

# mallopt(3). Setting either one ends glibc's own adjustment, so both are set; an older glibc takes at most 32 MiB for
# the second, the maximum of that adjustment.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT = 64 * 2**20
_SIZES = (2**30, 32 * 2**20)  # bytes: larger blocks are mapped, zeroed and unmapped each time
_THEIRS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_memory() -> None:
    """Keep the memory that a batch frees for the next one, unless the operator has configured malloc.

    By default malloc returns all above 128 KiB to the kernel at once, and fetches it again page by page: 26 µs for a
    body of 100 kB. With this setting, such requests cost 89 µs instead of 119 (`make bench`, "100 kB"). Tensors count,
    too: on a CPU a batch of 8 images of EfficientNet-B0 has some above 32 MiB, and 18 800 to 45 800 page faults where
    these are mapped anew, none where they are kept, for 22 to 25 ms of CPU an image in place of 26 to 34, with the same
    peak (two runs each, one thread; tests/handlers/test_memory.py counts the faults).
    """
    if not any(name in os.environ for name in _THEIRS):
        with contextlib.suppress(AttributeError):  # not in every libc
            libc = ctypes.CDLL(None)
            for size in _SIZES:
                libc.mallopt(_M_TRIM_THRESHOLD, max(size, _KEPT))
                if libc.mallopt(_M_MMAP_THRESHOLD, size):
                    break


def give_memory_back() -> None:
    """Return malloc's free memory, in the arenas of all threads, to the kernel: 100 MiB after a batch of ResNet-152.

    It takes 0.1 to 0.2 ms for each MiB, without the interpreter's lock.
    """
    with contextlib.suppress(AttributeError):  # not in every libc
        ctypes.CDLL(None).malloc_trim(0)
