"""The workers of one model version: as many as wanted, replaced when they exit.

Reconcile, don't react: after every exit, scale and timer, `reconcile` compares wanted with
actual and acts on the plan. The plan is made in slot.py, without a clock.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.job import Job
from tsctl.daemon.workers.cores import Placement, crowding, oversubscription, threads_for
from tsctl.daemon.workers.engine import BatchEvents, Engine, Exit, LoadFailure, Worker, WorkerSpec
from tsctl.daemon.workers.slot import RESTART_LIMIT, Slot, SlotState, after_exit, plan
from tsctl.daemon.workers.state import WorkerState


class PoolListener(Protocol):
    """The receiver of a pool's events: the model."""

    @property
    def batches(self) -> BatchEvents:
        """The receiver of the events of the workers' batches: the dispatcher; they do not pass through the pool."""

    def worker_idle(self) -> None:
        """Note that a worker came up, and can take a batch."""

    def pool_changed(self) -> None:
        """Note that a worker came up, failed or left, or gave the first answer after crashes."""

    def worker_started(self) -> None:
        """Note that a worker was started."""

    def worker_exited(self, worker: Worker, how: Exit, expected: bool) -> None:
        """Note that a worker has ended; expected: it was told to, or had reported that it cannot load the model."""


class Pool:
    """Keeps `wanted` workers of one model version alive.

    Attributes:
        wanted: the target number of workers.
        spec: the configuration of those that are started from now on.
        cores: the number of cores they share.
        failure: why the last worker failed; None if none did, or one came up again and no place is given up.
        last_exit: how the last worker ended that was not told to, or None.
        crashes: consecutive workers that ended of themselves while they ran a batch, without any answer between.
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
        self.wanted = 0
        self.slots: list[Slot] = []
        self.failure: LoadFailure | None = None
        self.last_exit: Exit | None = None
        self.crashes = 0
        self._engine = engine
        self._placement = placement or Placement()
        self.spec = dataclasses.replace(spec, gpu_names=self._placement.names)
        self._clock = clock
        self._listener = listener
        self.cores = cores
        self._operators_threads = chosen_threads
        self._idle: dict[Worker, None] = {}  # in the order they became idle
        self._granting: dict[Worker, None] = {}  # in the order that they started their batches
        self._held: dict[Worker, None] = {}  # congested; they would be idle or granting
        self._leaving: dict[Worker, None] = {}  # no set: they are stopped in the same order in each run
        self._timer: Timer | None = None

    def __repr__(self) -> str:
        states = " ".join(slot.state.name for slot in self.slots) or "no slots"
        return f"<Pool {self.ready}/{self.wanted} ready, {self.idle} idle, {len(self._leaving)} leaving: {states}>"

    @property
    def idle(self) -> int:
        """The number of batches that can be sent now: workers without one, or free places of rows."""
        return len(self._idle)

    @property
    def granting(self) -> int:
        """The number of workers that have a batch and take one more, to start without a pause."""
        return len(self._granting)

    @property
    def unstarted(self) -> int:
        """The number of jobs sent ahead that no worker has started."""
        return sum([slot.worker.in_flight.unstarted for slot in self.slots if slot.worker is not None])

    @property
    def ready(self) -> int:
        """The number of workers with the model loaded, idle or not."""
        return len([slot for slot in self.slots if slot.state is SlotState.UP])

    @property
    def lone(self) -> bool:
        """Whether a worker without any batch can be taken."""
        return bool(self._idle)

    @property
    def busy(self) -> int:
        """The number of workers with the model loaded that have a batch."""
        return self.ready - len(self._idle)

    @property
    def serving(self) -> bool:
        """Whether any worker is ready; read for each request, so all workers are seldom examined."""
        return bool(self._idle or self._granting or self.ready)

    @property
    def hopeless(self) -> bool:
        """Whether no worker is present or starting."""
        return all(slot.state is SlotState.GAVE_UP for slot in self.slots)

    @property
    def empty(self) -> bool:
        """Whether every worker has exited and none is wanted."""
        return not self.slots and not self._leaving

    @property
    def workers(self) -> list[Worker]:
        """The present workers, in the order of their slots; without those that are leaving."""
        return [slot.worker for slot in self.slots if slot.worker is not None]

    @property
    def leaving(self) -> list[Worker]:
        """The workers that were told to end, and have not yet."""
        return list(self._leaving)

    @property
    def recovering(self) -> int:
        """The number of places whose worker ended during a batch, and whose next one is starting."""
        return len([slot for slot in self.slots if slot.recovering and slot.state is not SlotState.GAVE_UP])

    @property
    def free(self) -> Collection[Worker]:
        """The workers that can be sent a batch now."""
        return self._idle.keys()

    def take(self, worker: Worker) -> None:
        """Take one of the free workers for a batch, as `take_idle`."""
        del self._idle[worker]

    def take_idle(self, alone: bool = False) -> Worker:
        """Return one idle worker, the longest idle first; there must be one.

        Args:
            alone: the batch must have the process for itself, so the worker grants no other meanwhile.
        """
        worker = next(iter(self._idle))
        del self._idle[worker]
        if worker.in_flight.capacity > 1 and not alone:
            self._granting[worker] = None
        return worker

    def cancel(self, job: Job) -> None:
        """Ask the worker that runs a job to drop it."""
        for worker in (*self.workers, *self._leaving):
            worker.cancel(job)

    def take_granting(self) -> Worker:
        """Return the granting worker that has run its batch the longest; there must be one."""
        worker = next(iter(self._granting))
        if len(worker.in_flight) + 1 >= worker.in_flight.capacity:
            del self._granting[worker]
        return worker

    def take_back(self, worker: Worker, answered: bool) -> None:
        """Take a worker back that has ended a batch, and may have answered it."""
        self._take_out(worker)
        if worker.state is WorkerState.READY:
            self._offer(worker)
        if self.crashes and answered:
            self.crashes = 0
            self._listener.pool_changed()

    def scale(self, wanted: int) -> None:
        """Set the number of workers; slots that had given up try again."""
        self.wanted = wanted
        self.failure = None
        for slot in self.slots:
            slot.forgive()
        self._tell_threads()
        self.reconcile()

    def retry(self) -> None:
        """Start anew in every place that had given up, with a clean record."""
        self.last_exit = None
        self.crashes = 0
        self.scale(self.wanted)

    @property
    def given_up(self) -> int:
        """The number of places whose workers failed, and where no further worker is tried."""
        return len([slot for slot in self.slots if slot.state is SlotState.GAVE_UP])

    @property
    def pausing(self) -> int:
        """The number of places whose worker exited too early, and where the next one is started after a pause."""
        return len([slot for slot in self.slots if slot.state is SlotState.BACKOFF])

    def set_limits(self, batch_size: int, response_timeout: float, startup_timeout: float) -> None:
        """Use these limits from the next batch on; the startup timeout is for workers that start from now on."""
        limited = self.spec.limited(batch_size, response_timeout)
        self.spec = dataclasses.replace(limited, startup_timeout=startup_timeout)
        for worker in self.workers:
            worker.set_limits(batch_size, response_timeout)

    def choose_threads(self, count: int | None) -> None:
        """Let each process of the workers use so many threads from the next batch on; None: a share of the cores."""
        if count != self.spec.chosen_threads:
            self.spec = dataclasses.replace(self.spec, chosen_threads=count)
            self._tell_threads()

    def _tell_threads(self) -> None:
        for worker in self.workers:
            worker.set_threads(self.threads)

    def tell_workers(self, **fields: Any) -> None:
        """Send these further fields with the load of workers that start from now on (`WorkerSpec.told`)."""
        self.spec = dataclasses.replace(self.spec, told={**self.spec.told, **fields})

    def give_up(self, failure: LoadFailure) -> None:
        """Record a permanent failure in one slot, without starting a worker."""
        self.wanted = 1
        self.failure = failure
        self.slots = [Slot(SlotState.GAVE_UP)]

    def suspend(self) -> None:
        """Stop the workers from computing, until `resume`; those that start meanwhile go on."""
        for worker in self.workers:
            worker.suspend()

    def resume(self) -> None:
        for worker in self.workers:
            worker.resume()

    def drain(self, grace: float | None) -> None:
        """Retire all workers; each finishes its batches, within `grace` seconds, by default the response timeout."""
        self.wanted = 0
        self.reconcile(grace)

    def kill(self) -> None:
        """End all workers now."""
        self.wanted = 0
        self.reconcile(0.0)
        for worker in list(self._leaving):
            worker.kill()

    def reconcile(self, grace: float | None = None) -> None:
        """Compare wanted with actual and act.

        Args:
            grace: seconds a retired worker has to finish its batches; by default the response timeout,
                which begins again with each batch and each piece of an answer.
        """
        now = self._clock.now()
        todo = plan(self.slots, self.wanted, now)
        for index in todo.retire:  # the last first, and all behind those to be started: no index of the plan moves
            self._retire(self.slots.pop(index), math.inf if grace is None else grace)
        first_new = len(self.slots)
        self.slots.extend(Slot() for _ in range(todo.add))
        for index in (*todo.start, *range(first_new, len(self.slots))):
            self._start(self.slots[index])
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if todo.wake_at is None else self._clock.later(todo.wake_at - now, self.reconcile)
        self._listener.pool_changed()

    @property
    def threads(self) -> int:
        """Intra-op threads of each worker's process, or of each of its processes."""
        chosen = self.spec.chosen_threads or self._operators_threads
        return threads_for(self.cores, self.wanted * self.spec.processes, chosen)

    @property
    def threads_in_all(self) -> int:
        """Intra-op threads of all workers together; 0 on GPUs, and on a cluster."""
        if self.spec.devices or self.spec.engine is not None:
            return 0
        return self.wanted * self.spec.processes * self._threads_in_force

    @property
    def _threads_in_force(self) -> int:
        """Intra-op threads of each worker's process: its handler's own choice, or its share."""
        return self._handlers_threads or self.threads

    @property
    def _handlers_threads(self) -> int:
        """Intra-op threads that the handler has set itself; 0 if it has not, and while that is unknown."""
        return next((worker.report.threads for worker in self.workers if worker.report is not None), 0)

    def crowded_with(self, others: Iterable["Pool"]) -> str | None:
        """Return a warning that the workers, alone or with those of other models, have more threads than cores."""
        own = self.threads_in_all
        alone = self.oversubscription
        if alone is not None or not own:
            return alone
        crowded = crowding(
            self.cores, self._threads_in_force, [own, *(each.threads_in_all for each in others if each is not self)]
        )
        return None if crowded is None else "; ".join(crowded)

    @property
    def oversubscription(self) -> str | None:
        """A warning that the workers have more threads than there are cores. None if not, on GPUs, or on a cluster."""
        return self.shortage_with(self.wanted) if not self.spec.devices else None

    def shortage_with(self, workers: int) -> str | None:
        """Return why so many workers have no room on the cores or GPUs of the version; None if they have.

        On GPUs there is room for one worker on each, or on each group of them. A cluster places its workers itself.
        """
        spec = self.spec
        if spec.engine is not None:
            return None
        if spec.devices:
            most = len(spec.devices) // spec.gpus_each
            return f"each of the {len(spec.devices)} GPUs has a worker" if workers > most else None
        return oversubscription(
            self.cores, workers, self._operators_threads, spec.processes,
            of_model=spec.chosen_threads, of_handler=self._handlers_threads,
        )  # fmt: skip

    @property
    def next_gpu_ids(self) -> Sequence[int]:
        """The GPUs that one more worker would get; empty on the CPU, and on a cluster."""
        return self._placement.next(self.spec.devices, self.spec.gpus_each)

    def gpus_of(self, workers: int) -> Mapping[int, int]:
        """Return GPU → workers there: the present ones; without any, so many that would start."""
        present = self.workers
        if present:
            return Counter(gpu for worker in present for gpu in worker.gpu_ids)
        return self._placement.plan(self.spec.devices, self.spec.gpus_each, workers)

    def _start(self, slot: Slot) -> None:
        slot.state = SlotState.STARTING
        gpu_ids = self._placement.take_devices(self.spec.devices, self.spec.gpus_each)
        spec = dataclasses.replace(self.spec, threads=self.threads, gpu_ids=gpu_ids)
        try:
            slot.worker = (spec.engine or self._engine).start_worker(spec, self, self._listener.batches)
            self._listener.worker_started()
        except OSError as error:
            self._placement.release(gpu_ids)
            # Out of processes, memory or descriptors: that may pass, so it counts as an early exit.
            self.failure = LoadFailure(f"cannot start a process: {error.strerror}", permanent=False)
            after_exit(slot, answered=False, now=self._clock.now())
            self._clock.soon(self.reconcile)

    def _retire(self, slot: Slot, grace: float) -> None:
        worker = slot.worker
        if worker is None:
            return
        self._take_out(worker)
        self._leaving[worker] = None
        worker.drain(grace)

    def _take_out(self, worker: Worker) -> None:
        """Stop dispatching to a worker."""
        self._idle.pop(worker, None)
        self._granting.pop(worker, None)
        self._held.pop(worker, None)

    def _offer(self, worker: Worker) -> None:
        """Let the dispatcher use a worker that can take a batch, as soon as it reads."""
        in_flight = worker.in_flight
        (self._held if in_flight.congested else self._granting if in_flight else self._idle)[worker] = None

    def _slot_of(self, worker: Worker) -> Slot | None:
        return next((slot for slot in self.slots if slot.worker is worker), None)

    # WorkerEvents: calls from the engine.

    def loaded(self, worker: Worker) -> None:
        slot = self._slot_of(worker)
        if slot is None:
            return  # retired meanwhile
        slot.state, slot.recovering = SlotState.UP, False
        if not any(each.state is SlotState.GAVE_UP for each in self.slots):
            self.failure = None
        worker.set_threads(self.threads)
        worker.set_limits(self.spec.batch_size, self.spec.response_timeout)
        self._idle[worker] = None
        self._listener.pool_changed()
        self._listener.worker_idle()

    def load_failed(self, worker: Worker, failure: LoadFailure) -> None:
        self.failure = failure
        slot = self._slot_of(worker)
        if slot is not None and failure.permanent:
            slot.state = SlotState.GAVE_UP
        self._listener.pool_changed()

    def lost(self, worker: Worker) -> None:
        self._take_out(worker)

    def flow_changed(self, worker: Worker) -> None:
        if worker in self._idle or worker in self._granting or worker in self._held:
            self._take_out(worker)
            self._offer(worker)
            if not worker.in_flight.congested:
                self._listener.worker_idle()

    def exited(self, worker: Worker, how: Exit) -> None:
        self._take_out(worker)
        self._leaving.pop(worker, None)
        self._placement.release(worker.gpu_ids)
        slot = self._slot_of(worker)
        self._listener.worker_exited(worker, how, slot is None or slot.state is SlotState.GAVE_UP)
        if slot is None:
            self._listener.pool_changed()
            return
        self.last_exit = how
        if how.crashed and how.busy:
            self.crashes += 1
        if slot.state is SlotState.GAVE_UP:
            slot.worker = None
        else:
            if slot.state is SlotState.STARTING and self.failure is None:
                self.failure = LoadFailure(f"the worker exited while it was loading: {how.reason}", permanent=False)
            gives_up = after_exit(slot, worker.answered, self._clock.now(), how.busy)
            if gives_up and self.failure is None:  # clients that wait for this worker wait in vain
                early = f"{RESTART_LIMIT} workers exited before their first answer, the last: {how.reason}"
                self.failure = LoadFailure(early, permanent=False)
        self.reconcile()
