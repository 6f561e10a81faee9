"""The cores, threads and GPUs of each worker.

A GPU is the least used of those that its model may use, counted from 0 (`choose`, a pure function). `Placement` keeps
the count of workers on each, over all models of the daemon. Which GPUs there are is core/machine/cards.py.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence

from tsctl.daemon.core.machine.cgroups import quotas


def usable_cores() -> int:
    """Count the cores this process may use: affinity, and the tightest cgroup quota above it; at least 1."""
    cores = min([float(len(os.sched_getaffinity(0))), *quotas()])
    return max(1, int(cores))


def chosen_threads(environment: Mapping[str, str]) -> int | None:
    """Return the operator's number of threads for each worker: `OMP_NUM_THREADS`, None if unset or invalid.

    A list is for nested parallel regions (OpenMP 5.2, 21.1.2): the first number counts.
    """
    text = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def threads_for(cores: int, workers: int, chosen: int | None = None) -> int:
    """Return the intra-op threads of each worker: the chosen number, else cores ÷ workers, at least 1.

    More threads than cores is far worse than too few: they spin while they wait for each other.
    """
    return chosen or max(1, cores // max(1, workers))


def oversubscription(
    cores: int, workers: int, chosen: int | None = None, processes: int = 1, *, of_model: int | None = None,
    of_handler: int = 0,
) -> str | None:  # fmt: skip
    """Return a warning and a remedy if the workers of a version have more threads than there are cores; None if not.

    Args:
        chosen: by the operator, with OMP_NUM_THREADS.
        processes: of each worker.
        of_model: the threads that the model's settings name, which win.
        of_handler: the threads that the handler has set itself, whatever was said; 0 for none.
    """
    count = workers * processes
    threads = of_handler or threads_for(cores, count, of_model or chosen)
    if count * threads <= cores:
        return None
    noun = "workers" if processes == 1 else "processes"
    have = f"{count} × {threads} threads" if threads > 1 else f"{count} {noun}"
    share = "1 core" if cores == 1 else f"{cores} cores"
    better = f"at most {cores} would be faster"
    if of_handler and threads > 1:
        better = f"the handler has set {threads} threads itself: {max(1, cores // count)} would be faster"
    elif threads > 1:
        better = f"`threads` is {of_model}" if of_model else f"OMP_NUM_THREADS is {chosen}: unset it"
        better += f": {max(1, cores // count)} would be faster" if of_model else ""
    return f"{have} share {share} and slow each other down; {better}"


def crowding(cores: int, threads: int, of_each: Sequence[int]) -> tuple[str, str] | None:
    """Return a warning and its remedy if the workers of several models have more threads than there are cores.

    None if they have not, or if fewer threads of each would not help the model in question.

    Args:
        threads: of one worker of that model.
        of_each: the threads of all workers of each model, that one among them; 0 for those without.
    """
    busy = [each for each in of_each if each]
    fewer = max(1, cores // max(1, len(busy)))
    if len(busy) < 2 or sum(busy) <= cores or threads <= fewer:
        return None
    share = "1 core" if cores == 1 else f"{cores} cores"
    return (
        f"{len(busy)} models share {share} with {sum(busy)} threads, and slow each other down while they work at once",
        f"`tsctl set MODEL --threads {fewer}` for each",
    )


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

    def take_devices(self, allowed: Sequence[int], count: int = 1) -> tuple[int, ...]:
        """Choose the devices of a worker that is about to start; to be given back by `release`."""
        devices = self.next(allowed, count)
        self._load.update(devices)
        return devices

    def release(self, devices: Sequence[int]) -> None:
        self._load.subtract(devices)
