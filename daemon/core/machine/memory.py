"""The memory of processes and their descendants on the host, and what is left for more; everything here blocks, for ms.

By proportional set sizes: a page that several processes share, such as the weights of a template, counts once over all
of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tsctl.daemon.core.machine.cgroups import groups_of
from tsctl.daemon.core.machine.processes import PROC, parents_in


def memory_of(pids: Iterable[int], proc: Path = PROC) -> dict[str, int]:
    """Return the bytes that processes and their descendants take, by device: `host`; workers tell of GPUs themselves.

    Processes that have ended, and the process id 0, take nothing.
    """
    roots = {pid for pid in pids if pid}
    parents = parents_in(proc)
    family = set(roots).union(*(descendants(parents, root) for root in roots))
    return {"host": sum(taken(pid, proc) for pid in family)}


def descendants(parents: Mapping[int, int], root: int) -> list[int]:
    """Return all descendants of a process, from a mapping process → parent."""
    found: list[int] = []
    generation = [root]
    while generation:
        generation = [pid for pid, parent in parents.items() if parent in generation and pid != parent]
        found += generation
    return found


def proportional(rollup: str) -> int:
    """Parse the proportional set size of `smaps_rollup` (proc(5)), and return bytes."""
    return next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))


def taken(pid: int, proc: Path = PROC) -> int:
    """Return the bytes that a process takes on the host; 0 after its end."""
    try:
        return proportional((proc / str(pid) / "smaps_rollup").read_text())
    except (OSError, StopIteration):
        pass  # not allowed, or not there: the resident set is more, and good enough
    try:
        status = (proc / str(pid) / "status").read_text()
    except OSError:
        return 0  # ended meanwhile
    return sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:"))


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
