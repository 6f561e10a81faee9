"""Choose the device of a worker: the least used of those its model may use, counted from 0.

The decision is `choose`, a pure function; `Placement` keeps the count of workers on each device,
over all models of the daemon.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

_NVIDIA = Path("/proc/driver/nvidia/gpus")  # one directory for each GPU that the driver has found


def choose(allowed: Sequence[int], load: Mapping[int, int]) -> int | None:
    """Choose a device for one more worker.

    Args:
        allowed: device ids, in order of preference; empty for the CPU.
        load: device id → workers on it.

    Returns:
        The least used device, the first of equals; None for the CPU.
    """
    return min(allowed, key=lambda device: load.get(device, 0), default=None)


def visible_gpus(environment: Mapping[str, str], found: int) -> int:
    """Count the GPUs that a worker will see: those found, without those hidden by `CUDA_VISIBLE_DEVICES`.

    CUDA numbers the visible ones from 0, and stops at the first entry that is no device
    (CUDA C Programming Guide, "CUDA environment variables").
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return found
    count = 0
    for entry in visible.split(","):
        word = entry.strip()
        named = word.startswith(("GPU-", "MIG-"))
        if not named and not (word.isdigit() and int(word) < found):
            break
        count += 1
    return min(count, found)


def count_gpus() -> int:
    """Count this machine's usable NVIDIA GPUs, without CUDA and without torch."""
    try:
        found = len(list(_NVIDIA.iterdir()))
    except OSError:
        found = 0
    return visible_gpus(os.environ, found)


class Placement:
    """The workers on each device.

    Attributes:
        gpus: the number of GPUs; their ids are 0 … gpus - 1.
    """

    def __init__(self, gpus: int = 0) -> None:
        self.gpus = gpus
        self._load: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"<Placement {dict(sorted(self._load.items()))} of {self.gpus} GPUs>"

    def take(self, allowed: Sequence[int]) -> int | None:
        """Choose a device for a worker that is about to start; to be given back by `release`."""
        device = choose(allowed, self._load)
        if device is not None:
            self._load[device] += 1
        return device

    def release(self, device: int | None) -> None:
        if device is not None:
            self._load[device] -= 1
