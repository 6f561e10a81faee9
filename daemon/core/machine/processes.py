"""A process, its parent and its children, its memory and its processor time, from `/proc` (proc(5)).

The memory of several is by proportional set sizes: a page that they share, such as the weights of a template, counts
once over all of them. That blocks, for milliseconds.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tsctl.daemon.core.machine.cgroups import PROC as PROC
from tsctl.daemon.core.machine.cgroups import groups_of

_PAGE = os.sysconf("SC_PAGESIZE")  # bytes
_TICK = 1.0 / os.sysconf("SC_CLK_TCK")  # seconds


class ProcessFacts(NamedTuple):
    """Memory and processor time of a process.

    Attributes:
        memory: resident bytes, with those that it shares with others.
        cpu: seconds of processor time, its own and the kernel's for it.
    """

    memory: int
    cpu: float


def process_facts(pid: int, proc: Path = PROC) -> ProcessFacts:
    """Return the facts of a process; zeros after its end, and for the process id 0."""
    try:
        return parse_stat(_stat(pid, proc)) if pid else ProcessFacts(0, 0.0)
    except (OSError, ValueError, IndexError):
        return ProcessFacts(0, 0.0)


def parse_stat(text: str) -> ProcessFacts:
    """Parse `/proc/PID/stat`.

    Raises:
        ValueError: the text is not of that form.
        IndexError: the text is not of that form.
    """
    fields = fields_in(text)
    return ProcessFacts(int(fields[21]) * _PAGE, (int(fields[11]) + int(fields[12])) * _TICK)


def fields_in(stat: str) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the third, the state, on.

    The second, the program's name in parentheses, may contain anything.
    """
    return stat.rpartition(")")[2].split()


def stat_of(pid: int, proc: Path = PROC) -> list[str] | None:
    """Return the fields of `/proc/PID/stat` from the state on; None without a process, or if it only has to be reaped.

    Reaping may take long: the first process of a container may take minutes to reap a daemon that was killed.
    """
    try:
        fields = fields_in(_stat(pid, proc))
    except (OSError, ValueError):
        return None
    return None if len(fields) < 4 or fields[0] in ("Z", "X") else fields


def start_of(pid: int, proc: Path = PROC) -> int:
    """Return the start time of a process, in ticks since the boot; 0 if the process has ended."""
    fields = stat_of(pid, proc)
    return 0 if fields is None else int(fields[19])


def parents_in(proc: Path = PROC) -> dict[int, int]:
    """Return process → parent, of all processes."""
    parents = {}
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(fields_in(_stat(int(entry.name), proc))[1])
            except OSError:
                continue
    return parents


def child_pids(parent: int, proc: Path = PROC) -> list[int]:
    """Return a process's children, as its threads list them.

    Raises:
        OSError: the process has ended, or the kernel has no lists (CONFIG_PROC_CHILDREN).
    """
    lists = [(task / "children").read_text() for task in (proc / str(parent) / "task").iterdir()]
    return [int(pid) for each in lists for pid in each.split()]


def _stat(pid: int, proc: Path) -> str:
    return (proc / str(pid) / "stat").read_text()


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
    return _bytes_of("VmRSS:", status)


def own_memory(pid: int, proc: Path = PROC) -> int:
    """Return the bytes that a process has written and shares with no other; 0 where the kernel does not tell."""
    try:
        rollup = (proc / str(pid) / "smaps_rollup").read_text()
    except OSError:
        return 0
    return _bytes_of("Private_Dirty:", rollup)


def _bytes_of(name: str, text: str) -> int:
    """Return the size of a line of `status` or `smaps_rollup` (proc(5)); 0 without it."""
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(name))


def room_for_more(pids: Iterable[int], ending: Iterable[int], proc: Path = PROC) -> tuple[int, "AvailableMemory"]:
    """Return what another process like `pids` takes at least, and the memory that is left. Blocks for milliseconds.

    Args:
        ending: processes that are about to end, whose memory counts as left.
    """
    freed = sum(own_memory(pid, proc) for pid in ending)
    least = min(available(proc))
    each = min(filter(None, (own_memory(pid, proc) for pid in pids)), default=0)
    return each, least._replace(left=least.left + freed)


# The limit, the usage, and the lines of memory.stat with what the kernel drops where memory is wanted: of version 2 and
# of version 1. Active pages of files are among these, as in the machine's MemAvailable: weights that several workers
# have read.
_FILES = (
    ("memory.max", "memory.current", ("inactive_file", "active_file")),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", ("total_inactive_file", "total_active_file")),
)


class AvailableMemory(NamedTuple):
    """The bytes that are left of a limit, its owner in words, and the limit itself."""

    left: int
    owner: str
    limit: int


def available(proc: Path = PROC) -> Iterator[AvailableMemory]:
    """Yield the memory of the machine, and then that of each cgroup above this process that limits it."""
    lines = (line.split() for line in (proc / "meminfo").read_text().splitlines())
    sizes = {words[0]: int(words[1]) * 1024 for words in lines}
    yield AvailableMemory(sizes["MemAvailable:"], "this machine", sizes["MemTotal:"])
    for directory in groups_of("memory", proc):
        found = left_in(directory)
        if found is not None:
            yield found


def left_in(directory: Path) -> AvailableMemory | None:
    """Return what is left under a cgroup's limit; None without a limit."""
    for limit, usage, droppable in _FILES:
        try:
            most = (directory / limit).read_text().strip()
            used = int((directory / usage).read_text())
            lines = (directory / "memory.stat").read_text().splitlines()
        except (OSError, ValueError):
            continue
        if most == "max":
            return None
        cached = sum(int(line.split()[1]) for line in lines if line.partition(" ")[0] in droppable)
        return AvailableMemory(max(0, int(most) - used + cached), f"the cgroup {directory}", int(most))
    return None
