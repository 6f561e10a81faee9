"""The workers of a version that runs row by row, as the dispatcher sees them: free places instead of idle workers."""

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.workers.cores import Placement
from tsctl.daemon.workers.engine import Engine, Worker, WorkerSpec
from tsctl.daemon.workers.pool import Pool, PoolListener
from tsctl.daemon.workers.state import WorkerState


class RowPool(Pool):
    """A pool whose workers take row after row while they have room; the one with the fewest is next.

    A job that must have the process for itself gets a worker without rows, which takes no other until the job ends.
    """

    def __init__(
        self,
        engine: Engine,
        spec: WorkerSpec,
        clock: Clock,
        listener: PoolListener,
        cores: int,
        placement: Placement | None = None,
        chosen_threads: int | None = None,
    ) -> None:
        super().__init__(engine, spec, clock, listener, cores, placement, chosen_threads)
        self._reserved: set[Worker] = set()

    @property
    def idle(self) -> int:
        return sum([worker.in_flight.capacity - len(worker.in_flight) for worker in self._idle])

    @property
    def lone(self) -> bool:
        return any(not worker.in_flight for worker in self._idle)

    @property
    def busy(self) -> int:
        return len([worker for worker in self.workers if worker.in_flight])

    def take(self, worker: Worker) -> None:
        if len(worker.in_flight) + 1 >= worker.in_flight.capacity:
            del self._idle[worker]

    def take_idle(self, alone: bool = False) -> Worker:
        worker = min(self._idle, key=lambda each: len(each.in_flight))
        if alone:
            self._reserved.add(worker)
            del self._idle[worker]
        else:
            self.take(worker)
        return worker

    def take_back(self, worker: Worker, answered: bool) -> None:
        self._reserved.discard(worker)
        self._offer(worker)
        if self.crashes and answered:
            self.crashes = 0
            self._listener.pool_changed()

    def set_limits(self, batch_size: int, response_timeout: float, startup_timeout: float) -> None:
        super().set_limits(batch_size, response_timeout, startup_timeout)
        for worker in self.workers:
            self._offer(worker)

    def flow_changed(self, worker: Worker) -> None:
        self._offer(worker)
        if worker in self._idle:
            self._listener.worker_idle()

    def _offer(self, worker: Worker) -> None:
        """Let the dispatcher use a worker that has room and reads, and only then."""
        in_flight = worker.in_flight
        room = len(in_flight) < in_flight.capacity and not in_flight.congested and worker not in self._reserved
        if room and worker.state is WorkerState.READY and self._slot_of(worker) is not None:
            self._idle[worker] = None
        else:
            self._idle.pop(worker, None)

    def _take_out(self, worker: Worker) -> None:
        super()._take_out(worker)
        self._reserved.discard(worker)
