"""What a worker process keeps in memory, and whether that is too much.

Looked at by the daemon, once a second, because that works everywhere. A cgroup of its own for each worker would be
exact, but a container seldom may make one. RLIMIT_AS counts addresses, of which torch and CUDA reserve many times what
they use, and RLIMIT_DATA counts the stacks of threads that never grow. So a worker may pass its limit for a moment;
what it cannot do is stay there.
"""

import re
from pathlib import Path

from daemon.settings import size_text

LOOK_EVERY = 1.0  # seconds
_KEPT = re.compile(r"^(?:RssAnon|VmSwap):\s+(\d+) kB$", re.MULTILINE)


def memory_of(pid: int, proc: Path = Path("/proc")) -> int:
    """Bytes that a process has written and that nothing but memory and swap holds; 0 if it has gone.

    Without the pages of files (libraries, weights that are mapped) and of the arena: those the kernel can take back, or
    are the daemon's. What a forked worker shares with its template counts, since nobody can say whose it is.
    """
    try:
        return sum(map(int, _KEPT.findall((proc / str(pid) / "status").read_text()))) * 1024
    except OSError:
        return 0


def excess(used: int, limit: int) -> str | None:
    """Say in words that a worker is over its limit, both in bytes; None if it is not."""
    if used <= limit:
        return None
    return f"it was over its memory limit of {size_text(limit)}: it had {size_text(used)}"
