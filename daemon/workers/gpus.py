"""Choose the devices of a worker: the least used of those its model may use, counted from 0.

The decision is `choose`, a pure function; `Placement` keeps the count of workers on each device,
over all models of the daemon.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

_NVIDIA = Path("/proc/driver/nvidia/gpus")  # one directory for each GPU that the driver has found


def choose(allowed: Sequence[int], load: Mapping[int, int], count: int = 1) -> tuple[int, ...]:
    """Choose the devices of one more worker.

    Args:
        allowed: device ids, in order of preference; empty for the CPU.
        load: device id → workers on it.
        count: how many devices the worker uses.

    Returns:
        The least used devices, the first of equals, in the order of `allowed`; empty for the CPU.
    """
    least = sorted(allowed, key=lambda device: load.get(device, 0))[:count]
    return tuple(device for device in allowed if device in least)


def visible_entries(environment: Mapping[str, str], found: int) -> list[str]:
    """Return the GPUs that a worker will see, by their place: each a number or the beginning of a UUID of nvidia-smi.

    CUDA numbers the visible ones from 0, and stops at the first entry that is no device
    (CUDA C Programming Guide, "CUDA environment variables").

    Args:
        found: how many the driver has found.
    """
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [str(index) for index in range(found)]
    entries: list[str] = []
    for entry in visible.split(","):
        word = entry.strip()
        named = word.startswith(("GPU-", "MIG-"))
        if not named and not (word.isdigit() and int(word) < found):
            break
        entries.append(word if named else str(int(word)))
    return entries[:found]


def visible_gpus(environment: Mapping[str, str], found: int) -> int:
    """Count the GPUs that a worker will see: those found, without those hidden by `CUDA_VISIBLE_DEVICES`."""
    return len(visible_entries(environment, found))


def usable_gpus() -> list[str]:
    """Return this machine's usable NVIDIA GPUs as `visible_entries`, without CUDA and without torch."""
    try:
        found = len(list(_NVIDIA.iterdir()))
    except OSError:
        found = 0
    return visible_entries(os.environ, found)


def count_gpus() -> int:
    """Count this machine's usable NVIDIA GPUs."""
    return len(usable_gpus())


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

    def next(self, allowed: Sequence[int], count: int = 1) -> tuple[int, ...]:
        """Return the devices that the next worker would get."""
        return choose(allowed, self._load, count)

    def take(self, allowed: Sequence[int], count: int = 1) -> tuple[int, ...]:
        """Choose the devices of a worker that is about to start; to be given back by `release`."""
        devices = self.next(allowed, count)
        self._load.update(devices)
        return devices

    def release(self, devices: Sequence[int]) -> None:
        self._load.subtract(devices)
