"""The memory of processes and their descendants on the host; everything here blocks.

By proportional set sizes: a page that several processes share, such as the weights of a template, counts
once over all of them.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

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
