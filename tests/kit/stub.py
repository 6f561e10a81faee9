"""Workers that exist only in memory, for tests and simulations.

`StubEngine` runs on any clock. The engine's attributes set how its workers behave:
how long loading and a batch take, and whether loading fails. A test can also kill a worker.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.job import Batch, Fate, Job, Outcome, Reply
from tsctl.daemon.core.states import follow
from tsctl.daemon.workers.engine import BatchEvents, Exit, LoadFailure, WorkerListener, WorkerSpec
from tsctl.daemon.workers.inflight import CAPACITY, InFlight
from tsctl.daemon.workers.rows.in_flight import RowsInFlight
from tsctl.daemon.workers.state import TRANSITIONS, WorkerEvent, WorkerState
from tsctl.handlers.wire import Declared, Loaded


def echo(job: Job) -> Reply:
    """Answer with the request's first parameter."""
    return Reply(200, bytes(job.params[0].value) if job.params else b"")


class Computation:
    """A batch that ends after some seconds, those not counted in which it is suspended; a timer, too."""

    def __init__(self, clock: Clock, seconds: float, finished: Callable[[float], None]) -> None:
        self._clock = clock
        self._seconds, self._left = seconds, seconds
        self._finished = finished
        self.resume()

    def resume(self) -> None:
        self._since = self._clock.now()
        self._timer = self._clock.later(self._left, lambda: self._finished(self._seconds))

    def suspend(self) -> None:
        self._left -= self._clock.now() - self._since
        self.cancel()

    def cancel(self) -> None:
        self._timer.cancel()


@dataclass
class StubEngine:
    """An engine on a clock.

    Attributes:
        load_time: seconds from the start of a worker until it is ready.
        batch_time: batch size → seconds.
        jobs_time: the jobs of a batch → seconds, in place of `batch_time`; None for that.
        load_failure: the failure of every load, or None if loading works.
        answer: job → reply.
        capacity: batches that a worker may hold.
        report: of every worker that has loaded its model.
        declared: the inputs that every worker's handler declares.
        notes: every worker's sentences for the model's author.
        gpu_memory: bytes that each worker tells to hold on each of its GPUs.
        workers: every worker ever started, in order.
    """

    clock: Clock
    load_time: float = 0.0
    batch_time: Callable[[int], float] = field(default=lambda _size: 0.0)
    load_failure: LoadFailure | None = None
    jobs_time: Callable[[Sequence[Job]], float] | None = None
    answer: Callable[[Job], Reply] = echo
    capacity: int = CAPACITY
    report: Loaded = field(default_factory=lambda: Loaded(0.0, own_handle=False))
    declared: Declared | None = None
    notes: Sequence[str] = ()
    gpu_memory: int = 0
    workers: list["StubWorker"] = field(default_factory=list)

    def start_worker(self, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents) -> "StubWorker":
        kind = StubWorker if spec.mode == "batch" else StubRowWorker
        worker = kind(self, spec, events, batches, pid=len(self.workers) + 1)
        self.workers.append(worker)
        return worker

    def seconds(self, jobs: Sequence[Job]) -> float:
        """Return the seconds of a batch."""
        return self.batch_time(len(jobs)) if self.jobs_time is None else self.jobs_time(jobs)

    def begin_batch(self, jobs: Sequence[Job], finished: Callable[[float], None]) -> Timer:
        """Begin a batch: call `finished` at its end, with the seconds that it took."""
        return Computation(self.clock, self.seconds(jobs), finished)


class StubWorker:
    """A worker without a process."""

    _ids = itertools.count(1)

    def __init__(
        self, engine: StubEngine, spec: WorkerSpec, events: WorkerListener, batches: BatchEvents, pid: int
    ) -> None:
        self.state = WorkerState.STARTING
        self.pid = pid
        self.answered = False
        self.gpu_ids = spec.gpu_ids
        self.gpu_memory: Mapping[int, int] = {}
        self.node = ""
        self.waits = ""
        self.started = engine.clock.now()
        self.load_time = 0.0
        self.report: Loaded | None = None
        self.declared: Declared | None = None
        self.notes: Sequence[str] = ()
        self.spec = spec
        self.threads = spec.threads
        self.batches: list[Batch] = []  # all batches ever sent to the worker
        self.in_flight = InFlight(engine.capacity)
        self._engine = engine
        self._events = events
        self._batch_events = batches
        self._timer: Timer = engine.clock.later(engine.load_time, self._load)
        self.suspended = False

    def __repr__(self) -> str:
        return f"<StubWorker {self.pid} {self.state.name}{' busy' if self.in_flight else ''}>"

    def predict(self, batch: Batch) -> None:
        assert self.state is WorkerState.READY, self
        self.in_flight.add_batch(batch)
        self.batches.append(batch)
        if len(self.in_flight) == 1:
            self._begin(batch)

    def cancel(self, job: Job) -> None:
        """Do nothing: a whole batch runs to its end."""

    def set_threads(self, count: int) -> None:
        self.threads = count

    def set_limits(self, batch_size: int, response_timeout: float) -> None:
        self.spec = self.spec.limited(batch_size, response_timeout)

    def suspend(self) -> None:
        if self.state is WorkerState.READY and not self.suspended:
            self.suspended = True
            for each in self._computing:
                each.suspend()

    def resume(self) -> None:
        if self.suspended:
            self.suspended = False
            for each in self._computing:
                each.resume()

    @property
    def _computing(self) -> list[Computation]:
        return [self._timer] if self.in_flight and isinstance(self._timer, Computation) else []

    def congest(self, congested: bool) -> None:
        """Leave what is sent unread, or read on."""
        self.in_flight.congested = congested
        self._events.flow_changed(self)

    def drain(self, grace: float) -> None:
        self.resume()
        self.state = follow(TRANSITIONS, self.state, WorkerEvent.STOP)
        if not self.in_flight:
            self._exit(0, "stopped")

    def kill(self) -> None:
        if self.state is not WorkerState.EXITED:
            self._exit(None, "it was stopped", fate=Fate.STOPPED)

    def die(self, reason: str = "killed by SIGKILL", retry: bool = True, killed: bool = False) -> None:
        """End like a killed process: the batches come back, then the worker exits."""
        if self.state is not WorkerState.EXITED:
            self._exit(None, reason, Fate.KILLED if killed else Fate.LOST, retry)

    def crash(self, reason: str = "it exited with code 7", retry: bool = True) -> None:
        """End like a crashed process: the batches come back, then the worker exits."""
        if self.state is not WorkerState.EXITED:
            self._exit(7, reason, Fate.CRASHED, retry)

    def hang(self, reply: Reply, retry: bool = True) -> None:
        """Reach the response timeout of the running batch: the batch ends with this reply, then the process."""
        if self.state is WorkerState.READY:
            self.state = follow(TRANSITIONS, self.state, WorkerEvent.STOP)
        batch, outcomes = self.in_flight.expire(retry, reply)
        self._batch_events.ended(self, batch, outcomes, 0.0)
        self._exit(None, "killed: response timeout")

    def stream(self, body: bytes) -> None:
        """Send a piece of the answer to each job of the running batch."""
        assert self.in_flight.running is not None
        for job in self.in_flight.running.jobs:
            self._batch_events.streamed(self, job, Reply(200, body))

    def load_now(self) -> None:
        """Load, or fail to, before the load time has passed."""
        self._timer.cancel()
        self._load()

    def _load(self) -> None:
        self.state = follow(TRANSITIONS, self.state, WorkerEvent.HELLO)
        failure = self._engine.load_failure
        if failure is not None:
            self._events.load_failed(self, failure)
            self._exit(3, failure.error)
            return
        self.state = follow(TRANSITIONS, self.state, WorkerEvent.LOADED)
        self.load_time = self._engine.clock.now() - self.started
        self.report = self._engine.report
        self.declared, self.notes = self._engine.declared, self._engine.notes
        self.gpu_memory = dict.fromkeys(self.gpu_ids, self._engine.gpu_memory)
        self._events.loaded(self)

    def _begin(self, batch: Batch) -> None:
        self._timer = self._engine.begin_batch(batch.jobs, self._finish)

    def _finish(self, seconds: float) -> None:
        self.answered = True
        batch = self.in_flight.finish()
        if self.in_flight.running is not None:
            self._begin(self.in_flight.running)
        self._batch_events.ended(self, batch, [Outcome(job, self._engine.answer(job)) for job in batch.jobs], seconds)
        if self.state is WorkerState.DRAINING and not self.in_flight:
            self._exit(0, "stopped")

    def _exit(self, code: int | None, reason: str, fate: Fate = Fate.LOST, retry: bool = True) -> None:
        self._timer.cancel()
        self.state = follow(TRANSITIONS, self.state, WorkerEvent.EXITED)
        kind = "stopped" if code == 0 else "code" if code is not None else "signal"
        how = Exit(code, reason, crashed=fate is Fate.CRASHED, busy=self.in_flight.busy, kind=kind)
        for batch, outcomes in self.in_flight.give_back(retry, reason, fate):
            self._batch_events.ended(self, batch, outcomes, 0.0)
        self._events.exited(self, how)


class StubRowWorker(StubWorker):
    """A worker without a process that runs rows on their own; a cancelled row ends at once."""

    in_flight: RowsInFlight

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.in_flight = RowsInFlight(self.spec.rows)
        self._timers: dict[int, Timer] = {}

    @property
    def _computing(self) -> list[Computation]:
        return [each for each in self._timers.values() if isinstance(each, Computation)]

    def predict(self, batch: Batch) -> None:
        assert self.state is WorkerState.READY, self
        self.in_flight.add_batch(batch)
        self.batches.append(batch)
        self._timers[batch.id] = self._engine.begin_batch(batch.jobs, lambda seconds: self.end_row(batch.id, seconds))

    def set_limits(self, batch_size: int, response_timeout: float) -> None:
        super().set_limits(batch_size, response_timeout)
        self.in_flight.capacity = self.spec.rows

    def cancel(self, job: Job) -> None:
        number = self.in_flight.number_of(job)
        if number is not None:
            self.in_flight.cancel(number)
            self._timers[number].cancel()
            self._timers[number] = self._engine.clock.later(0.0, lambda: self.end_row(number, 0.0))

    def end_row(self, number: int, seconds: float = 0.0) -> None:
        """End a row with its answer."""
        self._timers.pop(number).cancel()
        awaited = self.in_flight.find(number) is not None
        self.answered = True
        batch = self.in_flight.finish_row(number)
        [job] = batch.jobs
        outcome = Outcome(job, self._engine.answer(job)) if awaited else Outcome(job, None, Fate.CANCELLED)
        self._batch_events.ended(self, batch, [outcome], seconds)
        if self.state is WorkerState.DRAINING and not self.in_flight:
            self._exit(0, "stopped")

    def _exit(self, code: int | None, reason: str, fate: Fate = Fate.LOST, retry: bool = True) -> None:
        for timer in self._timers.values():
            timer.cancel()
        super()._exit(code, reason, fate, retry)
