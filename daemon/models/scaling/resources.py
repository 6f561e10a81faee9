"""Check whether another worker of a version has room: cores and GPUs (workers/pool.py), and memory, measured."""

from daemon.metrics.machine.memory import taken
from daemon.models.scaling.memory import available, size_text
from daemon.workers.engine import local_pid
from daemon.workers.pool import Pool

RESERVE = 0.1  # of the memory that a worker takes, for what it takes while it runs


def obstacle_to_more(pool: Pool) -> str:
    """Return why one more worker has no room; empty if it has. Blocks, for milliseconds for each process of a worker.

    A worker is taken to need as much memory as the largest that is there; those that are still loading need theirs.
    """
    crowded = pool.shortage_with(pool.wanted + 1)
    if crowded is not None:
        return crowded
    pids = [pid for pid in map(local_pid, pool.workers) if pid]
    if not pids:
        return ""
    each = max(map(taken, pids))
    needed = round(each * (1 + RESERVE)) * (1 + max(0, pool.wanted - pool.ready))
    left, where = min(available(), key=lambda found: found[0])
    if needed <= left:
        return ""
    return f"a worker takes {size_text(each)}, and {where} has {size_text(left)} left"
