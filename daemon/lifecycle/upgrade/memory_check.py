"""Check whether a second daemon fits into memory beside the first: for a while both have all workers.

The need is estimated by the present use of this daemon and all its descendants, in proportional set sizes: shared
pages count once. The supply is the kernel's estimate of available memory, and the rest
under the cgroup's limits. GPU memory is not counted: there a load that does not fit fails with its own error.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from daemon.metrics.machine.memory import PROC, descendants, parents_in, taken
from daemon.workers.cores import control_groups

# The limit, the usage, and the line of memory.stat with the memory reclaimable at once: of version 2 and of version 1.
_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


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
        f"while both run, the new one needs about {_size(memory.needed)} more memory, as much as this one and its"
        f" workers take now, and {memory.where} has {_size(memory.available)} left."
        " Free memory, or skip this check with `--no-check-memory`."
    )


def measure(pid: int, proc: Path = PROC) -> MemoryCheck:
    """Measure needed and available memory; blocks, for milliseconds for each large process.

    Args:
        pid: the daemon.
    """
    needed = sum(taken(each, proc) for each in (pid, *descendants(parents_in(proc), pid)))
    least = min(_available(proc), key=lambda found: found[0])
    return MemoryCheck(needed, *least)


def _available(proc: Path) -> Iterator[tuple[int, str]]:
    """Yield the available bytes, and the limit's owner."""
    for line in (proc / "meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024, "this machine"
    try:
        groups, mounts = (proc / "self" / "cgroup").read_text(), (proc / "self" / "mountinfo").read_text()
    except OSError:
        return
    for directory in control_groups("memory", groups, mounts):
        left = left_in(directory)
        if left is not None:
            yield left, f"the cgroup {directory}"


def left_in(directory: Path) -> int | None:
    """Return the bytes left under a cgroup's limit; None without a limit."""
    for limit, usage, droppable in _FILES:
        try:
            most = (directory / limit).read_text().strip()
            used = int((directory / usage).read_text())
            lines = (directory / "memory.stat").read_text().splitlines()
        except (OSError, ValueError):
            continue
        if most == "max":
            return None
        cached = sum(int(line.split()[1]) for line in lines if line.split()[:1] == [droppable])
        return max(0, int(most) - used + cached)
    return None


def _size(count: float) -> str:
    return f"{count / 1024**3:.1f} GiB" if count >= 1024**3 else f"{count / 1024**2:.0f} MiB"
