"""Measure whether another worker of a version has room: cores and GPUs (workers/pool.py), memory of both (rule.py)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.machine.cards import Card
from tsctl.daemon.core.machine.processes import available, taken
from tsctl.daemon.extensions.scaling.facts import DeviceMemory
from tsctl.daemon.extensions.scaling.rule import memory_obstacle
from tsctl.daemon.workers.engine import local_pid
from tsctl.daemon.workers.pool import Pool

FRESH = 5.0  # seconds that a reading of GPUs counts, while the workers are the same …
BACKOFF = 60.0  # … and one that has told nothing: the driver may hang


class WorkerRoom:
    """The room for one more worker of one version.

    The host's memory is read at once, which blocks for milliseconds for each process of a worker. That of GPUs is read
    in another thread, once a decision needs it: NVML takes from 30 ms to seconds. Workers tell what they hold there.

    Args:
        gpus: returns GPU → what it tells (`Gpus.now`); blocks.
    """

    def __init__(self, clock: Clock, gpus: Callable[[], Mapping[int, Card]]) -> None:
        self._clock = clock
        self._gpus = gpus
        self._reading: Mapping[int, Card] | None = None
        self._of: tuple[object, ...] = ()  # the workers that were read
        self._until = 0.0
        self._asking = False

    def obstacle(self, pool: Pool) -> str | None:
        """Return why one more worker has no room; empty if it has, None while the GPUs are being read."""
        if crowded := pool.shortage_with(pool.wanted + 1):
            return crowded
        pids = [pid for pid in map(local_pid, pool.workers) if pid]
        if not pids:
            return ""
        if full := memory_obstacle([host_memory(pool, pids)]):
            return full
        if not pool.next_gpu_ids:
            return ""
        return self._on_gpus(pool, pids)

    def _on_gpus(self, pool: Pool, pids: Sequence[int]) -> str | None:
        of = (*pids, pool.ready)
        reading = self._reading if of == self._of else None
        fresh = reading is not None and self._clock.now() < self._until
        if not fresh and not self._asking:
            self._asking = True
            self._clock.aside(self._gpus, partial(self._note, of))
        if reading is None:
            return None
        full = memory_obstacle(list(gpu_memory(pool, reading)))
        return full if full or fresh else None  # an old reading is no reason to add a worker

    def _note(self, of: tuple[object, ...], reading: Mapping[int, Card]) -> None:
        self._reading, self._of, self._asking = reading, of, False
        self._until = self._clock.now() + (FRESH if reading else BACKOFF)


def host_memory(pool: Pool, pids: Sequence[int]) -> DeviceMemory:
    """Return the memory of the host, or of the cgroup that has less left."""
    left, where = min(available(), key=lambda found: found[0])
    loading = max(0, pool.wanted - pool.ready)
    return DeviceMemory(where=where, takes=max(map(taken, pids)), left=left, loading=loading)


def gpu_memory(pool: Pool, reading: Mapping[int, Card]) -> Iterator[DeviceMemory]:
    """Yield the memory of each GPU that the next worker would get; of one that tells no numbers, none."""
    takes = max((size for worker in pool.workers for size in worker.gpu_memory.values()), default=0)
    for gpu in pool.next_gpu_ids:
        if gpu in reading:
            loading = sum(gpu in worker.gpu_ids and not worker.load_time for worker in pool.workers)
            yield DeviceMemory(where=f"GPU {gpu}", takes=takes, left=reading[gpu].free, loading=loading)
