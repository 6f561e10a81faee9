"""A process, its parent and its children, its memory and its processor time, from `/proc` (proc(5))."""

import os
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
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
