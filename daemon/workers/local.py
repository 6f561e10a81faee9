"""A worker that is a process of this machine: the conversation, in frames (handlers/wire.py) on a socketpair.

The making of its process is in processes/templates/tree.py, the end in processes/process.py.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.job import Batch, Fate, Job, Piece
from tsctl.daemon.core.states import follow
from tsctl.daemon.workers.cores import held_by
from tsctl.daemon.workers.engine import (
    LOAD_FAILED,
    UNREACHABLE,
    BatchEvents,
    Exit,
    LoadFailure,
    WorkerListener,
    WorkerSpec,
)
from tsctl.daemon.workers.frames import Flows, check_measured, outcomes_of, piece_of, predict_of, row_of, timeout_reply
from tsctl.daemon.workers.inflight import CAPACITY, InFlight
from tsctl.daemon.workers.processes.memory_limit import LOOK_EVERY, excess, memory_of, memory_of_group
from tsctl.daemon.workers.processes.process import WorkerProcess
from tsctl.daemon.workers.processes.spawn import ProcessSource, load_of
from tsctl.daemon.workers.state import TRANSITIONS, WorkerEvent, WorkerState
from tsctl.handlers import wire
from tsctl.handlers.compiling import mypyc_attr
from tsctl.handlers.credit import PATIENCE, cost_of
from tsctl.handlers.frame_reader import FrameReader

UNREAD = f"The client did not read the streamed answer; its batch waited {PATIENCE:g} s, and continues without it."
LEAVE_TIME = 5.0  # seconds between closing the socket and SIGKILL


@mypyc_attr(allow_interpreted_subclasses=True)  # those of simulations
class LocalWorker:
    """One worker process. In its methods an asyncio.Protocol, the daemon's end of the socketpair (see `Connection`)."""

    def __init__(
        self,
        spec: WorkerSpec,
        events: WorkerListener,
        batches: BatchEvents,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        source: ProcessSource,
        arena: Arena | None,
    ) -> None:
        self.state = WorkerState.STARTING
        self.answered = False
        self.gpu_ids = spec.gpu_ids
        self.gpu_memory: Mapping[int, int] = {}
        self.started = time.time()
        self.load_time = 0.0
        self.report: wire.Loaded | None = None
        self.declared: wire.Declared | None = None
        self.notes: Sequence[str] = ()
        self._began = clock.now()
        self._spec = spec
        self._events, self._batches = events, batches
        self._clock = clock
        self._threads = spec.threads
        self._told_batch_size = spec.batch_size
        self._reader = FrameReader()
        self._transport: asyncio.Transport | None = None
        self.in_flight = InFlight(CAPACITY)
        self._flows = Flows(self._grant)
        self._retry = bool(spec.retry)
        self._shares = arena is not None
        self._stopped = False  # the daemon ends the worker, whatever that does
        self._protocol_error = False  # the worker sent an invalid message: anything after that is ignored
        end = cast(asyncio.Protocol, self)
        self._process = WorkerProcess(spec, end, source, loop, clock, self._exited, arena)
        self._timer: Timer = clock.later(spec.startup_timeout, self._startup_timeout)
        self._leave_timer: Timer | None = None
        self._memory_timer: Timer | None = None
        self._suspended: float | None = None  # since when
        self._not_computed = 0.0  # seconds of the running batch in which the worker was suspended
        self._hung = False  # killed for a batch that took too long, whatever the worker reported afterwards
        self._too_large = False  # killed for its memory
        if spec.max_memory is not None:
            self._look_at_memory(spec.max_memory)

    def __repr__(self) -> str:
        batch = f" with {self.in_flight.running!r}" if self.in_flight else ""
        named = f"{self._spec.model_name}/{self._spec.model_version}"
        return f"<LocalWorker pid={self.pid} {named} {self.state.name}{batch}>"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def node(self) -> str:
        return self._process.node

    @property
    def waits(self) -> str:
        return self._process.waits

    def _advance(self, event: WorkerEvent) -> None:
        self.state = follow(TRANSITIONS, self.state, event)

    # Calls from the pool and the dispatcher.

    def predict(self, batch: Batch) -> None:
        assert self.state is WorkerState.READY and self._transport is not None, self
        message, leases = predict_of(batch, shared=self._shares)
        self.in_flight.add_batch(batch, leases)
        if len(self.in_flight) == 1:
            self._time_response()
        self._transport.write(wire.encode(message))

    def cancel(self, job: Job) -> None:
        """Do nothing: a whole batch runs to its end."""

    def set_threads(self, count: int) -> None:
        if count != self._threads and self.state is WorkerState.READY and self._transport is not None:
            self._threads = count
            self._transport.write(wire.encode(wire.Threads(count)))

    def set_limits(self, batch_size: int, response_timeout: float) -> None:
        self._spec = self._spec.limited(batch_size, response_timeout)
        if batch_size != self._told_batch_size and self.state is WorkerState.READY and self._transport is not None:
            self._told_batch_size = batch_size
            self._transport.write(wire.encode(wire.BatchSize(batch_size)))

    def suspend(self) -> None:
        if self._suspended is None and self.state is WorkerState.READY and self._process.suspend():
            self._suspended = self._clock.now()
            self._timer.cancel()

    def resume(self) -> None:
        if self._suspended is None:
            return
        self._process.resume()
        since, self._suspended = self._suspended, None
        if self.in_flight:
            self._not_computed += self._clock.now() - since
        self._time_anew()

    def _time_anew(self) -> None:
        """Start the response timeout, after `suspend`."""
        if self.in_flight:
            self._time_response()

    def drain(self, grace: float) -> None:
        self.resume()
        if self.state in (WorkerState.DRAINING, WorkerState.EXITED):
            return
        loading = self.state is not WorkerState.READY
        self._advance(WorkerEvent.STOP)
        if loading:
            self._process.kill("it was stopped while it was loading")
        elif not self.in_flight:
            self._leave()
        elif grace < math.inf:  # otherwise the response timeout ends the worker
            self._set_leave_timer(grace, lambda: self._stop("it did not finish within the grace time"))

    def kill(self) -> None:
        self._stop("it was stopped")

    # The worker's end.

    def _stop(self, because: str) -> None:
        self._stopped = True
        self._process.kill(because)

    def _leave(self) -> None:
        """Close the socket: the worker sees that and exits."""
        if self._transport is not None:
            self._transport.close()
        self._set_leave_timer(LEAVE_TIME, lambda: self._process.kill("it did not leave when asked"))

    def _set_leave_timer(self, delay: float, call: Callable[[], None]) -> None:
        if self._leave_timer is not None:
            self._leave_timer.cancel()
        self._leave_timer = self._clock.later(delay, call)

    def _exited(self, how: Exit) -> None:
        self._advance(WorkerEvent.EXITED)
        self._timer.cancel()
        if self._leave_timer is not None:
            self._leave_timer.cancel()
        if self._memory_timer is not None:
            self._memory_timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        if how.kind == UNREACHABLE:
            self.in_flight.start_all()
        self.in_flight.end_all_leases()
        self._flows.close_all()
        how = replace(how, busy=self.in_flight.busy or self._hung)
        for batch, outcomes in self.in_flight.give_back(self._retry, how.reason, self._fate(how)):
            self._batches.ended(self, batch, outcomes, 0.0)
        self._events.exited(self, how)

    def _fate(self, how: Exit) -> Fate:
        """Return the fate of the jobs that the worker had started when it ended."""
        if how.crashed:
            return Fate.CRASHED
        if self._too_large or self._process.died_of_sigkill:
            return Fate.KILLED
        return Fate.STOPPED if self._stopped else Fate.LOST

    def _look_at_memory(self, limit: int) -> None:
        whole = memory_of if self._spec.group is None else memory_of_group
        why = excess(whole(self.pid), limit) if self.pid else None
        if why is None:
            self._memory_timer = self._clock.later(LOOK_EVERY, lambda: self._look_at_memory(limit))
            return
        self._too_large = True
        if self.state in (WorkerState.STARTING, WorkerState.LOADING):  # another one would need as much
            self._events.load_failed(self, LoadFailure(f"the worker was killed: {why}", out_of_memory=True))
        self._process.kill(why, "memory")

    # Timeouts.

    def _startup_timeout(self) -> None:
        seconds = self._spec.startup_timeout
        if self.state in (WorkerState.STARTING, WorkerState.LOADING):
            why = f": {self.waits}" if self.waits else ""
            late = f"the model was not loaded within the startup timeout of {seconds:g} s{why}"
            failure = LoadFailure(late, permanent=False)
            self._advance(WorkerEvent.STOP)  # the worker may yet report that it is ready
            self._events.load_failed(self, failure)
            self._process.kill(f"startup timeout of {seconds:g} s", "startup_timeout")

    def _time_response(self) -> None:
        """Start the response timeout: with a batch, and again with each piece of its answers.

        The time in which the worker may wait for clients with unread pieces is added.
        """
        self._timer.cancel()
        if self._suspended is not None:
            return
        seconds = self._spec.response_timeout
        if self._flows and self.in_flight.running is not None and self._flows.used_up(self.in_flight.running.id):
            seconds += PATIENCE
        self._timer = self._clock.later(seconds, self._response_timeout)

    def _response_timeout(self) -> None:
        if self.in_flight.running is None:
            return
        self._hung = True
        seconds = self._spec.response_timeout
        reply = timeout_reply(seconds)
        if self.state is WorkerState.READY:
            self._advance(WorkerEvent.STOP)  # nothing more is sent to the worker
        self._process.kill(f"response timeout of {seconds:g} s", "response_timeout")
        batch, outcomes = self.in_flight.expire(self._retry, reply)
        self._flows.close(batch.id)
        self._batches.ended(self, batch, outcomes, 0.0)

    # asyncio.Protocol: the daemon's end of the socketpair.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.state in (WorkerState.DRAINING, WorkerState.EXITED):
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._protocol_error:
            return
        try:
            for frame in self._reader.feed(data):
                self._received(wire.decode_for_daemon(frame))
        except wire.BrokenMessage as error:
            self._protocol_error = True
            self._disconnect()
            self._process.kill(f"it sent an invalid message to the daemon ({error})", "protocol")

    def pause_writing(self) -> None:
        """Send no further batch: the worker has not read the last one, which waits in the daemon's memory."""
        self.in_flight.congested = True
        self._events.flow_changed(self)

    def resume_writing(self) -> None:
        self.in_flight.congested = False
        self._events.flow_changed(self)

    def eof_received(self) -> None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the pidfd says how it ended
        if self.state is not WorkerState.DRAINING and self._process.running:
            # The worker is exiting, most likely. If not, the handler closed the socket: nothing more can arrive.
            why = "its handler closed its connection to the daemon"
            self._set_leave_timer(LEAVE_TIME, lambda: self._process.kill(why, "protocol"))
        self._disconnect()
        self._process.socket_closed()

    def _disconnect(self) -> None:
        """The connection is lost: stop dispatching; batches in flight return when the process exits."""
        if self.state is WorkerState.READY:
            self._advance(WorkerEvent.STOP)
            self._events.lost(self)

    def _received(self, message: wire.ToDaemon) -> None:
        match message:
            case wire.Done():
                self._done(message)
            case wire.Chunk():
                self._streamed(message)
            case wire.Cut():
                self._cut(message)
            case wire.Started():
                self.in_flight.start(message.batch)
            case wire.MemberLost():
                self._process.member_lost(message)
            case wire.GpuMemory():
                self.gpu_memory = held_by(self.gpu_ids, message.held)
            case wire.GpuLost():
                self._process.gpu_lost(message)
                self._disconnect()
                self._set_leave_timer(LEAVE_TIME, lambda: self._process.kill(message.reason, "gpu"))
            case wire.Hello() if self.state is WorkerState.STARTING:
                self._advance(WorkerEvent.HELLO)
                self._told_batch_size = self._spec.batch_size
                assert self._transport is not None
                self._transport.write(wire.encode(load_of(self._spec, self._process.group)))
            case wire.Loaded() if self.state is WorkerState.LOADING:
                self._timer.cancel()
                self._advance(WorkerEvent.LOADED)
                self.load_time = self._clock.now() - self._began
                self.report, self.declared, self.notes = message, message.declared, message.notes
                self.gpu_memory = held_by(self.gpu_ids, message.gpu_memory)
                self._measured(message.measured)
                if self._spec.retry is None:
                    self._retry = not message.own_handle
                self._events.loaded(self)
            case wire.LoadFailed() if self.state is WorkerState.LOADING:
                self._timer.cancel()
                self._advance(WorkerEvent.STOP)  # later messages about the load are ignored
                self._set_leave_timer(
                    LEAVE_TIME, lambda: self._process.kill("it did not leave after its load failed", LOAD_FAILED)
                )
                failure = LoadFailure(
                    message.error, message.traceback, not message.passing, out_of_memory=message.out_of_memory,
                    refused=message.refused,
                )  # fmt: skip
                self._events.load_failed(self, failure)
            case _:
                pass  # stopped while loading

    def _measured(self, measurements: Sequence[wire.Measurement]) -> None:
        if measurements:
            check_measured(measurements)
            self._spec.measured(measurements)

    def _streamed(self, chunk: wire.Chunk) -> None:
        batch = self.in_flight.find(chunk.batch)
        if batch is None:
            return  # ended by the response timeout
        for row, piece in chunk.pieces:
            job = row_of(batch, row)
            flow = self._flows.of(batch.id, row)
            flow.wanted = False
            flow.passed(cost_of(piece))
            if flow.used_up and not job.held_up:
                for each in batch.jobs:
                    each.held_up = True
            self._batches.streamed(self, job, piece_of(piece, flow))
            if not flow.wanted:
                flow.refuse()  # the client has gone, or has its answer
        self._batch_heard(batch)

    def _cut(self, cut: wire.Cut) -> None:
        """End the answers of a batch's clients that do not read."""
        batch = self.in_flight.find(cut.batch)
        if batch is None:
            return
        for row in cut.rows:
            job = row_of(batch, row)
            self._flows.of(batch.id, row).close()
            self._batches.streamed(self, job, Piece(503, b"", unread=UNREAD))
        self._batch_heard(batch)

    def _batch_heard(self, batch: Batch) -> None:
        """Note that a started batch goes on."""
        if batch is self.in_flight.running:
            self._time_response()

    def _grant(self, batch: int, row: int, count: int) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(wire.encode(wire.Credit(batch, row, count)))

    def _done(self, done: wire.Done) -> None:
        self._measured(done.measured)
        if done.batch == self.in_flight.overdue:
            self.in_flight.settle(done.kept)  # too late; but the worker has started the next batch
            return
        batch = self.in_flight.running
        if batch is None:
            return
        if done.batch != batch.id or len(done.answers) != len(batch.jobs):
            raise wire.BrokenMessage(f"{len(done.answers)} answers to batch {done.batch} instead of {batch!r}")
        self.in_flight.finish(done.kept)
        if self._flows:
            self._flows.close(batch.id)
        if self.in_flight:
            self._time_response()  # the worker has started the next one
        else:
            self._timer.cancel()
        self.answered = True
        outcomes = outcomes_of(batch, done)
        seconds = max(0.0, done.seconds - self._not_computed) if self._not_computed else done.seconds
        self._not_computed = 0.0
        if done.isolation is not None:  # isolated runs are not part of the batch's duration
            seconds = max(0.0, seconds - done.isolation.seconds)
            self._spec.isolated(done.isolation)
        if done.too_large:
            self._spec.too_large(done.too_large)
        self._batches.ended(self, batch, outcomes, seconds)
        if self.state is WorkerState.DRAINING and not self.in_flight:
            self._leave()
