"""Choose the devices of a worker: the least used of those its model may use, counted from 0.

The decision is `choose`, a pure function; `Placement` keeps the count of workers on each device,
over all models of the daemon. Which GPUs there are is core/machine/cards.py.
"""

from collections import Counter
from collections.abc import Mapping, Sequence


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


def seen_by(gpu_ids: Sequence[int], names: Sequence[str], *, alone: bool) -> tuple[int | None, list[str]]:
    """Return the number of a worker's GPU among those that it sees, and the names of these for CUDA.

    A worker with one GPU sees all, and finds its own by the daemon's number, as in TorchServe. One with several sees
    only these; and so does any where there are parts of GPUs (MIG), of which CUDA finds one in a process, the first.

    Args:
        gpu_ids: the worker's; empty for the CPU.
        names: of all GPUs, by their numbers; empty if unknown.
        alone: whether the worker is one process with one GPU.
    """
    if not gpu_ids:
        return None, []
    if alone and not any(name.startswith("MIG-") for name in names):
        return gpu_ids[0], list(names)
    return 0, [names[gpu] if names else str(gpu) for gpu in gpu_ids]


def held_by(gpu_ids: Sequence[int], told: Sequence[int]) -> dict[int, int]:
    """Return GPU → bytes that a worker holds there.

    Args:
        gpu_ids: the worker's.
        told: bytes on each of the GPUs that the worker sees (`seen_by`); empty if it does not know.
    """
    if len(told) == len(gpu_ids):
        return dict(zip(gpu_ids, told, strict=True))
    return {gpu: told[gpu] for gpu in gpu_ids if gpu < len(told)}


class Placement:
    """The workers on each device.

    Attributes:
        gpus: the number of GPUs; their ids are 0 … gpus - 1.
        names: of each for CUDA; empty if unknown.
    """

    def __init__(self, gpus: int = 0, names: Sequence[str] = ()) -> None:
        self.gpus = gpus or len(names)
        self.names = names
        self._load: Counter[int] = Counter()

    def __repr__(self) -> str:
        return f"<Placement {dict(sorted(self._load.items()))} of {self.gpus} GPUs>"

    def next(self, allowed: Sequence[int], count: int = 1) -> tuple[int, ...]:
        """Return the devices that the next worker would get."""
        return choose(allowed, self._load, count)

    def plan(self, allowed: Sequence[int], count: int, workers: int) -> Counter[int]:
        """Return device → the number of so many further workers that it would get."""
        load, planned = Counter(self._load), Counter[int]()
        for _ in range(workers):
            devices = choose(allowed, load, count)
            load.update(devices)
            planned.update(devices)
        return planned

    def take(self, allowed: Sequence[int], count: int = 1) -> tuple[int, ...]:
        """Choose the devices of a worker that is about to start; to be given back by `release`."""
        devices = self.next(allowed, count)
        self._load.update(devices)
        return devices

    def release(self, devices: Sequence[int]) -> None:
        self._load.subtract(devices)
