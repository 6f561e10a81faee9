"""The memory of GPUs that is free, and that processes take there, as `nvidia-smi` tells.

GPUs have the numbers that workers use: from 0, of those that `CUDA_VISIBLE_DEVICES` leaves visible. Within a container,
nvidia-smi may know no processes, or other ids for them: then their memory is unknown.
"""

import shutil
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from tsctl.daemon.core.machine.memory import APPS, MIB, ask, descendants, on_gpus, rows_of
from tsctl.daemon.core.machine.processes import PROC, parents_in

FREE = ("--query-gpu=index,uuid,memory.free", "--format=csv,noheader,nounits")


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """The memory of GPUs at one moment, in bytes.

    Attributes:
        free: GPU → free bytes; one that does not tell is missing.
        taken: process → GPU → bytes of the process and its descendants there.
    """

    free: Mapping[int, int] = field(default_factory=dict)
    taken: Mapping[int, Mapping[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class StubGpus:
    """GPUs that exist only in memory, for tests and simulations.

    Attributes:
        free: as of `GpuMemory`.
        taken: as of `GpuMemory`.
        reads: how often they were read.
    """

    free: dict[int, int]
    taken: dict[int, dict[int, int]]
    reads: int = 0

    def __call__(self, pids: Sequence[int]) -> GpuMemory:
        self.reads += 1
        return GpuMemory(dict(self.free), {pid: dict(self.taken[pid]) for pid in pids if pid in self.taken})


def read_gpu_memory(
    pids: Sequence[int], visible: Sequence[str], program: str = "nvidia-smi", proc: Path = PROC
) -> GpuMemory:
    """Ask `nvidia-smi`; blocks, for seconds where its driver hangs. Nothing is known without an answer.

    Args:
        visible: the GPUs by their place, each a number or the beginning of a UUID of nvidia-smi.
    """
    found = shutil.which(program)
    if found is None:
        return GpuMemory()
    parents = parents_in(proc)
    families = {pid: {pid, *descendants(parents, pid)} for pid in pids}
    return parse_gpu_memory(families, ask(found, APPS), ask(found, FREE), visible)


def parse_gpu_memory(families: Mapping[int, Set[int]], apps: str, free: str, visible: Sequence[str]) -> GpuMemory:
    """Return the memory from the lines of nvidia-smi.

    Args:
        families: process → the ids of the process and of its descendants.
        apps: as for `on_gpus`.
        free: a line for each GPU: its number, its UUID, free MiB.
        visible: as for `read_gpu_memory`.
    """
    rows = rows_of(free, 3)
    places = {
        index: place
        for index, uuid, _ in rows
        for place, entry in enumerate(visible)
        if entry == index or (not entry.isdigit() and uuid.startswith(entry))
    }
    numbers = "\n".join(f"{index}, {uuid}" for index, uuid, _ in rows)
    return GpuMemory(
        {places[index]: int(left) * MIB for index, _, left in rows if index in places and left.isdigit()},
        {
            pid: {
                places[device.removeprefix("gpu")]: size
                for device, size in on_gpus(family, apps, numbers).items()
                if device.removeprefix("gpu") in places
            }
            for pid, family in families.items()
        },
    )
