"""Measure whether another worker of a version has room: cores and GPUs (workers/pool.py), memory of both (rule.py)."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.core.machine.gpu_memory import GpuMemory
from tsctl.daemon.core.machine.memory import taken
from tsctl.daemon.core.machine.memory_left import available
from tsctl.daemon.extensions.scaling.facts import DeviceMemory
from tsctl.daemon.extensions.scaling.rule import memory_obstacle
from tsctl.daemon.workers.engine import local_pid
from tsctl.daemon.workers.pool import Pool

FRESH = 5.0  # seconds that a reading of GPUs counts, while the workers are the same …
BACKOFF = 60.0  # … and one that has told nothing: nvidia-smi may hang with its driver


class WorkerRoom:
    """The room for one more worker of one version.

    The host's memory is read at once, which blocks for milliseconds for each process of a worker. That of GPUs is read
    in another thread, once a decision needs it: `nvidia-smi` takes from 20 ms to seconds.

    Args:
        gpus: process ids → the memory of the GPUs; blocks.
    """

    def __init__(self, clock: Clock, gpus: Callable[[Sequence[int]], GpuMemory]) -> None:
        self._clock = clock
        self._gpus = gpus
        self._reading: GpuMemory | None = None
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
            self._clock.aside(partial(self._gpus, pids), partial(self._note, of))
        if reading is None:
            return None
        full = memory_obstacle(list(gpu_memory(pool, reading)))
        return full if full or fresh else None  # an old reading is no reason to add a worker

    def _note(self, of: tuple[object, ...], reading: GpuMemory) -> None:
        self._reading, self._of, self._asking = reading, of, False
        self._until = self._clock.now() + (FRESH if reading.free else BACKOFF)


def host_memory(pool: Pool, pids: Sequence[int]) -> DeviceMemory:
    """Return the memory of the host, or of the cgroup that has less left."""
    left, where = min(available(), key=lambda found: found[0])
    loading = max(0, pool.wanted - pool.ready)
    return DeviceMemory(where=where, takes=max(map(taken, pids)), left=left, loading=loading)


def gpu_memory(pool: Pool, reading: GpuMemory) -> Iterator[DeviceMemory]:
    """Yield the memory of each GPU that the next worker would get; of one that tells no numbers, none."""
    of_workers = [reading.taken.get(local_pid(worker), {}) for worker in pool.workers]
    takes = max((size for sizes in of_workers for size in sizes.values()), default=0)
    for gpu in pool.next_gpu_ids:
        if gpu in reading.free:
            loading = sum(gpu in worker.gpu_ids and not worker.load_time for worker in pool.workers)
            yield DeviceMemory(where=f"GPU {gpu}", takes=takes, left=reading.free[gpu], loading=loading)
