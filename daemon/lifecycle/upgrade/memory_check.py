"""Check whether a second daemon fits into memory beside the first: for a while both have all workers.

The need is estimated by the present use of this daemon and all its descendants, in proportional set sizes: shared
pages count once. The supply is the kernel's estimate of available memory, and the rest
under the cgroup's limits. GPU memory is not counted: there a load that does not fit fails with its own error.
"""

from dataclasses import dataclass
from pathlib import Path

from tsctl.daemon.core.machine.memory import available, descendants, taken
from tsctl.daemon.core.machine.processes import PROC, parents_in
from tsctl.daemon.setting_values import size_text


@dataclass(frozen=True, slots=True)
class MemoryCheck:
    """Sizes in bytes; `where` names the owner of the limit behind `available`."""

    needed: int
    available: int
    where: str = "this machine"


def shortage(memory: MemoryCheck) -> str | None:
    """Return why a second daemon does not fit, or None if there is room."""
    if memory.needed <= memory.available:
        return None
    return (
        f"while both run, the new one needs about {size_text(memory.needed)} more memory, as much as this one and its"
        f" workers take now, and {memory.where} has {size_text(memory.available)} left."
        " Free memory, or skip this check with `--no-check-memory`."
    )


def measure(pid: int, proc: Path = PROC) -> MemoryCheck:
    """Measure needed and available memory; blocks, for milliseconds for each large process.

    Args:
        pid: the daemon.
    """
    needed = sum(taken(each, proc) for each in (pid, *descendants(parents_in(proc), pid)))
    least = min(available(proc), key=lambda found: found[0])
    return MemoryCheck(needed, *least)
