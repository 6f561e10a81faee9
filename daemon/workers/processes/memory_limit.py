"""Measure a worker's memory, and compare the size with the limit.

The daemon looks once a second, because that works everywhere. A cgroup for each worker would be
exact, but a container can seldom make one. RLIMIT_AS counts addresses, of which torch and CUDA reserve many times their
use, and RLIMIT_DATA counts the stacks of threads that never grow. So a worker may exceed its limit for a moment, but
not stay there.
"""

import re
from pathlib import Path

from tsctl.daemon.core.machine.processes import PROC, child_pids
from tsctl.daemon.setting_values import size_text

LOOK_EVERY = 1.0  # seconds
_KEPT = re.compile(r"^(?:RssAnon|VmSwap):\s+(\d+) kB$", re.MULTILINE)


def memory_of(pid: int, proc: Path = PROC) -> int:
    """Return the bytes that a process has written and that only memory and swap hold; 0 if the process has gone.

    Without the pages of files (libraries, mapped weights) and of the arena: the kernel can reclaim those, or they are
    the daemon's. Pages that a forked worker shares with its template count, since their owner is unknown.
    """
    try:
        return sum(map(int, _KEPT.findall((proc / str(pid) / "status").read_text()))) * 1024
    except OSError:
        return 0


def memory_of_group(pid: int, proc: Path = PROC) -> int:
    """Return the bytes of a process and of those it has started: the group of a worker."""
    try:
        children = child_pids(pid, proc)
    except OSError:
        children = []
    return sum(memory_of(each, proc) for each in (pid, *children))


def excess(used: int, limit: int) -> str | None:
    """Return the sentence that a worker exceeds its limit, both in bytes; None if not."""
    if used <= limit:
        return None
    return f"it was over its memory limit of {size_text(limit)}: it had {size_text(used)}"
