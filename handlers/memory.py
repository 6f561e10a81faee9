"""What malloc keeps of freed memory: all of it from one batch to the next, nothing while the worker is idle."""

import contextlib
import ctypes
import os

# mallopt(3). Setting one of them ends glibc's own adjusting, so both are set, to what that could come to.
_M_TRIM_THRESHOLD, _KEPT = -1, 64 * 2**20
_M_MMAP_THRESHOLD, _LARGE = -3, 32 * 2**20
_THEIRS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_memory() -> None:
    """Keep what a batch frees for the next one, unless the operator has said what malloc is to do.

    By default all above 128 KiB goes back to the kernel at once, and comes again page by page: 26 µs for a body of
    100 kB. With this, such requests cost 89 µs instead of 119 (`make bench`, "100 kB").
    """
    if not any(name in os.environ for name in _THEIRS):
        with contextlib.suppress(AttributeError):  # not in every libc
            libc = ctypes.CDLL(None)
            libc.mallopt(_M_TRIM_THRESHOLD, _KEPT)
            libc.mallopt(_M_MMAP_THRESHOLD, _LARGE)


def give_memory_back() -> None:
    """Return to the kernel what malloc keeps for later: 100 MiB after a batch of eight for ResNet-152."""
    with contextlib.suppress(AttributeError):  # not in every libc
        ctypes.CDLL(None).malloc_trim(0)
