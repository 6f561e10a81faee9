"""The memory of processes and their descendants, on the host and on each GPU; everything here blocks.

On the host by proportional set sizes: a page that several processes share, such as the weights of a template, counts
once over all of them.
"""

import shutil
import subprocess
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from tsctl.daemon.core.machine.processes import PROC, parents_in

MIB = 1024 * 1024
_TIMEOUT = 3.0  # seconds of nvidia-smi
APPS = ("--query-compute-apps=pid,gpu_uuid,used_memory", "--format=csv,noheader,nounits")
_INDICES = ("--query-gpu=index,uuid", "--format=csv,noheader")


def memory_of(pids: Iterable[int], proc: Path = PROC) -> dict[str, int]:
    """Return the bytes that processes and their descendants take, by device: `host`, `gpu0` …

    Processes that have ended, and the process id 0, take nothing.
    """
    roots = {pid for pid in pids if pid}
    parents = parents_in(proc)
    family = set(roots).union(*(descendants(parents, root) for root in roots))
    program = shutil.which("nvidia-smi")
    gpus = {} if program is None else on_gpus(family, *(ask(program, query) for query in (APPS, _INDICES)))
    return {"host": sum(taken(pid, proc) for pid in family)} | gpus


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


def on_gpus(pids: Set[int], apps: str, indices: str) -> dict[str, int]:
    """Return the bytes of processes on each GPU.

    Args:
        apps: a line for each process: id, the GPU's UUID, MiB (`nvidia-smi --query-compute-apps`).
        indices: a line for each GPU: its number, its UUID.
    """
    numbers = {uuid: index for index, uuid in rows_of(indices, 2)}
    found: dict[str, int] = {}
    for pid, uuid, used in rows_of(apps, 3):
        if pid.isdigit() and int(pid) in pids and used.isdigit() and uuid in numbers:
            device = f"gpu{numbers[uuid]}"
            found[device] = found.get(device, 0) + int(used) * MIB
    return found


def rows_of(text: str, width: int) -> list[list[str]]:
    """Return the words of each line of nvidia-smi that has so many."""
    rows = [[word.strip() for word in line.split(",")] for line in text.splitlines()]
    return [row for row in rows if len(row) == width]


def ask(program: str, query: tuple[str, str]) -> str:
    """Return the answer of nvidia-smi to a query; empty if it fails, or takes longer than `_TIMEOUT`."""
    try:
        done = subprocess.run([program, *query], capture_output=True, text=True, timeout=_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout
