"""The freed memory of a worker: malloc keeps all of it between batches, and nothing while the worker is idle.

By default glibc maps each block of over 32 MiB anew, and returns the end of its heap; the kernel then zeroes page after
page. With the settings here no block is mapped, and nothing returned, because of its size: what a worker holds is the
peak of its model's own batches. Nor is there a cache of small blocks for each thread (tcache): torch aligns tensors,
which leaves splinters between them; that cache holds these, and the hole between two of them is too short for the
tensor that was freed there. With it two tensors in turns took a heap of 4 to 5 times their size, and two of 1.5 GiB
12.4 GiB; without it of their size (tests/handlers/test_memory.py). Its price is 2 % of a model of 40 tiny operations.

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
"""

import contextlib
import ctypes
from collections.abc import Mapping

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
