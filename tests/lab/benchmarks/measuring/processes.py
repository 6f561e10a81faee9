"""The resources used by a server and all its descendants, from /proc."""

import os
from pathlib import Path

from tsctl.daemon.core.machine.processes import descendants, parents_in, stat_of, taken

_TICKS = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """A process and all its descendants, parents first."""
    return [root, *descendants(parents_in(), root)]


def cpu_of_one(pid: int) -> float:
    """Seconds of processor time of a process, with those of its children that have ended; 0 after its end."""
    return sum(map(int, (stat_of(pid) or [])[11:15])) / _TICKS  # utime, stime, cutime, cstime: proc_pid_stat(5)


def cpu_of(root: int) -> float:
    """Seconds of processor time that a tree has used, without those that ended and were not waited for."""
    return sum(map(cpu_of_one, tree(root)))


def pss_of(root: int) -> int:
    """Bytes of memory of a tree; what several processes share counts once (proportional set size)."""
    return sum(map(taken, tree(root)))


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def used_by(pid: int) -> float:
    """Seconds on a core, of all threads of one process: finer than ticks."""
    return (
        sum(int((thread / "schedstat").read_text().split()[0]) for thread in Path(f"/proc/{pid}/task").iterdir()) / 1e9
    )
