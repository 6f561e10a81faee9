"""The memory that is left for further processes. Everything here blocks, for milliseconds."""

from collections.abc import Iterator
from pathlib import Path

from tsctl.daemon.core.machine.cgroups import groups_of
from tsctl.daemon.core.machine.processes import PROC

# The limit, the usage, and the line of memory.stat with the memory reclaimable at once: of version 2 and of version 1.
_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def available(proc: Path = PROC) -> Iterator[tuple[int, str]]:
    """Yield the available bytes, and the limit's owner."""
    for line in (proc / "meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024, "this machine"
    for directory in groups_of("memory", proc):
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
