"""The bytes that a worker holds on each GPU that it sees, as the worker itself knows them.

Containers hide the ids of processes from NVML, so that nobody else can tell. While the model loads, the free memory of
the GPUs shrinks by what the worker takes: its CUDA context, its tensors, and what its libraries and children take.
Afterwards torch's allocator tells how it grows. Other processes that load or leave meanwhile, as all do when a daemon
starts, cannot be told apart: the result is at least what torch holds, and if torch holds something, not much more.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tsctl.handlers import nvml

LOOK_EVERY = 5.0  # seconds
TOLD_FROM = 1 / 16  # of what was told last: smaller changes are not worth a message
MOST_BESIDE = 2**30  # bytes that a worker may hold beside torch's allocator: its context, and libraries
CONTEXT = 620 * 2**20  # bytes of a CUDA context with torch's kernels, where NVML does not tell: an H100, CUDA 13


def held_after_load(
    before: Sequence[int], after: Sequence[int], reserved: Sequence[int], used: Sequence[bool]
) -> list[int]:
    """Return the bytes that a worker holds on each GPU when its model is loaded.

    Args:
        before, after: the free bytes of each GPU before the load and after it; empty if unknown.
        reserved: the bytes of torch's allocator on each.
        used: whether the worker may hold anything there (`may_use`).
    """
    if len(before) != len(reserved) or len(after) != len(reserved):
        return [size + CONTEXT if size else 0 for size in reserved]
    lost = [was - now for was, now in zip(before, after, strict=True)]
    return [
        max(size, min(gone, size + MOST_BESIDE) if size else gone * there)
        for gone, size, there in zip(lost, reserved, used, strict=True)
    ]


def grown(loaded: Sequence[int], reserved: Sequence[int], now: Sequence[int]) -> list[int]:
    """Return the bytes held now.

    Args:
        loaded: held when the model was loaded.
        reserved, now: the bytes of torch's allocator then, and now.
    """
    return [held - then + size for held, then, size in zip(loaded, reserved, now, strict=True)]


def worth_telling(told: Sequence[int], now: Sequence[int]) -> bool:
    """Return whether the bytes have changed enough since they were told."""
    return any(abs(size - before) > TOLD_FROM * before for before, size in zip(told, now, strict=True))


def reserved_by_torch(count: int) -> list[int]:
    """Return the bytes of torch's allocator on each of so many GPUs; 0 unless this process has used CUDA by torch."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return [0] * count
    seen = torch.cuda.device_count()
    return [torch.cuda.memory_reserved(gpu) if gpu < seen else 0 for gpu in range(count)]


def may_use(count: int) -> list[bool]:
    """Return whether this process, or a child of it, may hold memory on each of so many GPUs.

    A process holds some where its primary context is active, which all CUDA libraries share. The CUDA driver is not
    loaded for this question.
    """
    children = "".join(file.read_text() for file in Path("/proc/self/task").glob("*/children"))
    if children:
        return [True] * count
    try:
        ask = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW).cuDevicePrimaryCtxGetState
    except OSError:
        return [False] * count  # nothing has loaded the driver
    except AttributeError:
        return [True] * count
    flags, active = ctypes.c_uint(), ctypes.c_int()
    return [ask(gpu, ctypes.byref(flags), ctypes.byref(active)) == 0 and bool(active.value) for gpu in range(count)]


class HeldMemory:
    """Measures one worker; made before the model is loaded.

    Args:
        names: of the GPUs that the worker sees, for CUDA; empty on the CPU.
        free: reads their free bytes.
        reserved, used: read `reserved_by_torch` and `may_use` of so many GPUs.
    """

    def __init__(
        self,
        names: Sequence[str],
        free: Callable[[Sequence[str]], list[int]] = nvml.free_memory,
        reserved: Callable[[int], list[int]] = reserved_by_torch,
        used: Callable[[int], list[bool]] = may_use,
    ) -> None:
        self._names, self._free, self._reserved, self._used = names, free, reserved, used
        self._before = free(names) if names else []
        self._loaded: list[int] = []
        self._then: list[int] = []
        self._told: list[int] = []

    def after_load(self) -> list[int]:
        """Return what the worker holds now that the model is loaded; empty on the CPU."""
        if self._names:
            count = len(self._names)
            self._then = self._reserved(count)
            self._loaded = held_after_load(self._before, self._free(self._names), self._then, self._used(count))
        self._told = self._loaded
        return self._told

    def news(self) -> list[int] | None:
        """Return what the worker holds now, if that is worth telling."""
        now = grown(self._loaded, self._then, self._reserved(len(self._names)))
        if not worth_telling(self._told, now):
            return None
        self._told = now
        return now

    def keep_telling(self, tell: Callable[[list[int]], None]) -> None:
        """Start a thread that tells of changes until telling fails; none on the CPU."""

        def look() -> None:
            while not pause.wait(LOOK_EVERY):
                try:
                    if (held := self.news()) is not None:
                        tell(held)
                except Exception:  # noqa: BLE001 - a context that is broken, or a daemon that is gone: others tell
                    return

        pause = threading.Event()
        if self._names:
            threading.Thread(target=look, name="tsctl-gpu-memory", daemon=True).start()
