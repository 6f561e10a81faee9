"""The resources used by a server and all its descendants, from /proc."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """One line of /proc/PID/stat.

    Attributes:
        cpu: seconds of processor time, with those of its children that have ended.
    """

    pid: int
    parent: int
    name: str
    state: str
    cpu: float


def parse_stat(text: str) -> Process:
    """Read a line of /proc/PID/stat; a name may hold spaces and brackets. See proc_pid_stat(5)."""
    pid, _, rest = text.partition(" (")
    name, _, rest = rest.rpartition(") ")
    fields = rest.split()
    ticks = sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return Process(int(pid), int(fields[1]), name, fields[0], ticks / _TICKS)


def read_all(proc: Path = PROC) -> Iterator[Process]:
    for entry in proc.iterdir():
        if entry.name.isdigit():
            try:
                yield parse_stat((entry / "stat").read_text())
            except OSError:
                continue  # it has ended


def tree(root: int, proc: Path = PROC) -> list[Process]:
    """A process and all its descendants, parents first."""
    known = {process.pid: process for process in read_all(proc) if process.state != "Z"}
    children: dict[int, list[int]] = {}
    for process in known.values():
        children.setdefault(process.parent, []).append(process.pid)
    found, due = [], [root]
    while due:
        pid = due.pop(0)
        if pid in known:
            found.append(known[pid])
            due += sorted(children.get(pid, []))
    return found


def cpu_of(root: int, proc: Path = PROC) -> float:
    """Seconds of processor time that a tree has used, without those that ended and were not waited for."""
    return sum(process.cpu for process in tree(root, proc))


def pss_of(root: int, proc: Path = PROC) -> int:
    """Bytes of memory of a tree; what several processes share counts once (proportional set size)."""
    return sum(_pss(proc / str(process.pid) / "smaps_rollup") for process in tree(root, proc))


def pss_of_one(pid: int, proc: Path = PROC) -> int:
    """Bytes of memory of one process."""
    return _pss(proc / str(pid) / "smaps_rollup")


def _pss(path: Path) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0  # it has ended
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def command_of(pid: int, proc: Path = PROC) -> str:
    try:
        return (proc / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


class Used(NamedTuple):
    """Seconds on a core, and seconds ready to run without a core; of all threads of one process."""

    cpu: float
    waited: float

    def since(self, before: "Used") -> "Used":
        return Used(self.cpu - before.cpu, self.waited - before.waited)


def used_by(pid: int) -> Used:
    cpu = waited = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        running, ready, _ = (thread / "schedstat").read_text().split()
        cpu += int(running)
        waited += int(ready)
    return Used(cpu / 1e9, waited / 1e9)
