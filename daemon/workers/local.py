"""Workers as processes of this machine.

A worker is exec'd with one end of a socketpair, over which frames travel (handlers/wire.py), and
with a pipe as stdout and stderr. It leads its own session, so that Ctrl-C at the daemon's
terminal does not reach it and its own children can be ended with it.

Death is the pidfd. The socket's end is only a hint, since a child of the handler may hold it.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from daemon.arena import Arena
from daemon.clock import Clock, Timer
from daemon.errors import ResponseTimeout
from daemon.job import Batch, Outcome, Reply
from daemon.workers.engine import Exit, LoadFailure, WorkerEvents, WorkerSpec
from daemon.workers.frames import predict_of, reply_of, share
from daemon.workers.hand import CAPACITY, Hand
from daemon.workers.output import OutputReader
from daemon.workers.state import Event, State, advance
from handlers import wire

LEAVE_TIME = 5.0  # seconds between the end of the socket and SIGKILL
LAST_WORDS = 0.1  # seconds to read what a dead worker wrote, if a child of it holds the socket open
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def worker_environment(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Make a worker's environment: ours, less the daemon's own settings, with the number of threads."""
    kept = {name: value for name, value in environment.items() if not name.startswith("TSCTL_")}
    return kept | dict.fromkeys(THREAD_VARIABLES, str(threads))


class LocalEngine:
    """Starts worker processes; must be used on the thread of the running loop.

    Args:
        environment: what workers start from; by default the daemon's own.
        arena: where large values of jobs may be; None if they never are.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        environment: Mapping[str, str] | None = None,
        arena: Arena | None = None,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._environment = os.environ if environment is None else environment
        self._arena = arena

    def start_worker(self, spec: WorkerSpec, events: WorkerEvents) -> "LocalWorker":
        return LocalWorker(spec, events, self._loop, self._clock, self._environment, self._arena)


class LocalWorker(asyncio.Protocol):
    """One worker process. As an asyncio protocol it is the daemon's end of the socketpair."""

    def __init__(
        self,
        spec: WorkerSpec,
        events: WorkerEvents,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        environment: Mapping[str, str],
        arena: Arena | None,
    ) -> None:
        self.state = State.STARTING
        self.answered = False
        self.gpu_id = spec.gpu_id
        self.started = time.time()
        self.load_time = 0.0
        self.optimized: Sequence[wire.Optimized] = ()
        self._began = clock.now()
        self._spec = spec
        self._events = events
        self._loop = loop
        self._clock = clock
        self._environment = environment
        self._arena = arena
        self._threads = spec.threads
        self._told_batch_size = spec.batch_size
        self._reader = wire.FrameReader()
        self._transport: asyncio.Transport | None = None
        self._socket_closed = False
        self._output = OutputReader(spec.log, self._maybe_exited)
        self.hand = Hand(CAPACITY)
        self._retry = bool(spec.retry)
        self._killed_because = ""
        self._process = self._spawn()
        self.pid = self._process.pid
        self._pidfd = os.pidfd_open(self.pid)
        loop.add_reader(self._pidfd, self._process_ended)
        self._timer: Timer = clock.later(spec.startup_timeout, self._startup_timeout)
        self._leave_timer: Timer | None = None

    def __repr__(self) -> str:
        batch = f" with {self.hand.running!r}" if self.hand else ""
        return (
            f"<LocalWorker pid={self.pid} {self._spec.model_name}/{self._spec.model_version} {self.state.name}{batch}>"
        )

    # What the pool and the dispatcher ask.

    def predict(self, batch: Batch) -> None:
        assert self.state is State.READY and self._transport is not None, self
        self.hand.take(batch)
        if len(self.hand) == 1:
            self._time_response()
        self._transport.write(wire.encode(predict_of(batch)))

    def set_threads(self, count: int) -> None:
        if count != self._threads and self.state is State.READY and self._transport is not None:
            self._threads = count
            self._transport.write(wire.encode(wire.Threads(count)))

    def set_limits(self, batch_size: int, response_timeout: float) -> None:
        self._spec = replace(self._spec, batch_size=batch_size, response_timeout=response_timeout)
        if batch_size != self._told_batch_size and self.state is State.READY and self._transport is not None:
            self._told_batch_size = batch_size
            self._transport.write(wire.encode(wire.BatchSize(batch_size)))

    def drain(self, grace: float) -> None:
        if self.state in (State.DRAINING, State.EXITED):
            return
        loading = self.state is not State.READY
        self.state = advance(self.state, Event.STOP)
        if loading:
            self._kill("it was stopped while it was loading")
        elif not self.hand:
            self._leave()
        else:
            self._set_leave_timer(grace, lambda: self._kill("it did not finish within the grace time"))

    def kill(self) -> None:
        self._kill("it was stopped")

    # The life of the process.

    def _spawn(self) -> subprocess.Popen[bytes]:
        ours, theirs = socket.socketpair()
        reading, writing = os.pipe()
        try:
            share(ours, self._arena)
            process = subprocess.Popen(
                # -P: the model's directory is the working directory, and must not come first on sys.path.
                [
                    str(self._spec.python or sys.executable),
                    "-P",
                    "-m",
                    "handlers.worker",
                    str(theirs.fileno()),
                    str(os.getpid()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd=self._spec.model_dir,
                env=worker_environment(self._environment, self._spec.threads),
            )
        except BaseException:
            ours.close()
            os.close(reading)
            raise
        finally:
            theirs.close()
            os.close(writing)
        self._connecting = self._loop.create_task(self._connect(ours, reading))
        return process

    async def _connect(self, ours: socket.socket, reading: int) -> None:
        await self._loop.connect_read_pipe(lambda: self._output, os.fdopen(reading, "rb", 0))
        await self._loop.create_unix_connection(lambda: self, sock=ours)

    def _leave(self) -> None:
        """Close the socket: the worker sees its end and leaves."""
        if self._transport is not None:
            self._transport.close()
        self._set_leave_timer(LEAVE_TIME, lambda: self._kill("it did not leave when asked"))

    def _kill(self, because: str) -> None:
        if self.state is not State.EXITED:
            self._killed_because = self._killed_because or because
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def _process_ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # its children; before it is reaped, so the number is still its own
        self._process.wait()
        self._set_leave_timer(LAST_WORDS, self._exited)
        self._maybe_exited()

    def _set_leave_timer(self, delay: float, call: Callable[[], None]) -> None:
        if self._leave_timer is not None:
            self._leave_timer.cancel()
        self._leave_timer = self._clock.later(delay, call)

    def _maybe_exited(self) -> None:
        if self._process.returncode is not None and self._socket_closed and self._output.closed:
            self._exited()

    def _exited(self) -> None:
        if self.state is State.EXITED:
            return
        self.state = advance(self.state, Event.EXITED)
        self._timer.cancel()
        if self._leave_timer is not None:
            self._leave_timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        how = self._exit_report()
        killed = self._process.returncode == -signal.SIGKILL and not self._killed_because
        for batch, outcomes in self.hand.give_back(self._retry, how.reason, killed):
            self._events.ended(self, batch, outcomes, 0.0)
        self._events.exited(self, how)

    def _exit_report(self) -> Exit:
        code = self._process.returncode
        if self._killed_because:
            return Exit(None, f"killed: {self._killed_because}", tuple(self._output.last))
        if code < 0:
            name = signal.Signals(-code).name
            hint = " (perhaps by the kernel, out of memory)" if name == "SIGKILL" else ""
            return Exit(None, f"killed by {name}{hint}", tuple(self._output.last))
        if code == wire.EXIT_DISCONNECTED:
            return Exit(code, "its handler closed its connection to the daemon", tuple(self._output.last))
        return Exit(code, f"it exited with code {code}", tuple(self._output.last))

    # Time-outs.

    def _startup_timeout(self) -> None:
        seconds = self._spec.startup_timeout
        if self.state in (State.STARTING, State.LOADING):
            failure = LoadFailure(
                f"the model was not loaded within the startup timeout of {seconds:g} s", permanent=False
            )
            self._events.load_failed(self, failure)
            self._kill(f"startup timeout of {seconds:g} s")

    def _time_response(self) -> None:
        """The response timeout begins: with a batch, and again with each piece of its answers."""
        self._timer.cancel()
        self._timer = self._clock.later(self._spec.response_timeout, self._response_timeout)

    def _response_timeout(self) -> None:
        if self.hand.running is None:
            return
        error = ResponseTimeout(
            f"The worker did not answer within the response timeout of {self._spec.response_timeout:g} s"
            " and is replaced."
        )
        reply = Reply(error.status, str(error).encode(), error=error.kind)
        if self.state is State.READY:
            self.state = advance(self.state, Event.STOP)  # it gets nothing more
        self._kill(f"response timeout of {self._spec.response_timeout:g} s")
        batch = self.hand.expire()
        self._events.ended(self, batch, [Outcome(job, reply) for job in batch.jobs], 0.0)

    # asyncio.Protocol: the daemon's end of the socketpair.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.state is State.DRAINING:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self._received(wire.decode_for_daemon(frame))
        except wire.BrokenMessage:
            self._kill("it wrote what is no message to its connection to the daemon")

    def eof_received(self) -> None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the pidfd says how it ended
        self._socket_closed = True
        if self.state is not State.DRAINING and self._process.returncode is None:
            # On its way out, most likely. If not, the handler closed it: nothing more can come from there.
            self._set_leave_timer(LEAVE_TIME, lambda: self._kill("its handler closed its connection to the daemon"))
        self._maybe_exited()

    def _received(self, message: wire.ToDaemon) -> None:
        match message:
            case wire.Done():
                self._done(message)
            case wire.Chunk():
                self._streamed(message)
            case wire.Hello() if self.state is State.STARTING:
                self.state = advance(self.state, Event.HELLO)
                self._send_model()
            case wire.Loaded() if self.state is State.LOADING:
                self._timer.cancel()
                self.state = advance(self.state, Event.LOADED)
                self.load_time = self._clock.now() - self._began
                self.optimized = message.optimized
                self._measured(message.measured)
                if self._spec.retry is None:
                    self._retry = not message.own_handle
                self._events.loaded(self)
            case wire.LoadFailed() if self.state is State.LOADING:
                self._timer.cancel()
                failure = LoadFailure(message.error, message.traceback, out_of_memory=message.out_of_memory)
                self._events.load_failed(self, failure)
            case _:
                pass  # it was stopped while it was loading

    def _measured(self, measurements: Sequence[wire.Measurement]) -> None:
        if measurements:
            self._spec.measured(measurements)

    def _send_model(self) -> None:
        spec = self._spec
        self._told_batch_size = spec.batch_size
        load = wire.Load(
            spec.model_name, spec.model_version, str(spec.model_dir), spec.handler,
            dict(spec.manifest), spec.batch_size, spec.threads, spec.gpu_id,
            None if spec.optimize is None else list(spec.optimize),
        )  # fmt: skip
        assert self._transport is not None
        self._transport.write(wire.encode(load))

    def _streamed(self, chunk: wire.Chunk) -> None:
        batch = self.hand.running
        if batch is None or batch.id != chunk.batch:
            return  # ended by the response timeout
        self._time_response()
        for row, piece in chunk.pieces:
            self._events.streamed(self, batch.jobs[row], reply_of(piece))

    def _done(self, done: wire.Done) -> None:
        self._measured(done.measured)
        if done.batch == self.hand.overdue:
            self.hand.overdue = None  # it was too late; but the next one has started
            return
        batch = self.hand.running
        if batch is None:
            return
        self.hand.finish()
        if self.hand:
            self._time_response()  # the worker has started the next one
        else:
            self._timer.cancel()
        self.answered = True
        outcomes = [Outcome(job, reply_of(answer)) for job, answer in zip(batch.jobs, done.answers, strict=True)]
        self._events.ended(self, batch, outcomes, done.seconds)
        if self.state is State.DRAINING and not self.hand:
            self._leave()
