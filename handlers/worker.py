"""`python -P -m handlers.worker FD PARENT`: frames in, one batch at a time, frames out.

Load, then Predict after Predict, until the daemon closes its end. The frames have a socket of their
own, so a handler may print whatever it likes. A worker that was forked from a template
(template.py) comes in by `converse`, with its model loaded perhaps.
"""

import io
import logging
import os
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

import msgspec

from handlers import compat, wire
from handlers.errors import HandlerError
from handlers.forking import die_with, give_memory_back
from handlers.rows import sendable
from handlers.runtime import Runtime
from handlers.threads import set_threads
from handlers.warmup import warm_up

IDLE = 1  # seconds
_OUR_FILES = (f"{Path(__file__).parent}{os.sep}", "<frozen importlib")


class Wire:
    """The worker's end of the socketpair, blocking.

    Args:
        idle: called once when nothing has come for `IDLE` seconds, and again after the next message.
    """

    def __init__(self, sock: socket.socket, idle: Callable[[], None] | None = None) -> None:
        self._sock = sock
        self._idle = idle
        self._wakes = False

    def send(self, message: wire.ToDaemon) -> None:
        self._sock.sendall(wire.encode(message))

    def receive(self) -> wire.ToWorker | None:
        """Wait for the next message; None when the daemon has closed its end."""
        if self._idle is not None and not self._wakes:
            self._wake_after(IDLE)
        head = self._exactly(wire.LENGTH.size)
        if head is None:
            return None
        body = self._exactly(wire.LENGTH.unpack(head)[0])
        return None if body is None else wire.decode_for_worker(body)

    def _exactly(self, count: int) -> bytearray | None:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            try:
                received = self._sock.recv_into(view)
            except BlockingIOError:
                self._wake_after(0)
                assert self._idle is not None
                self._idle()
                continue
            if not received:
                return None
            view = view[received:]
        return buffer

    def _wake_after(self, seconds: int) -> None:
        """Have the kernel end a receive after so many seconds (0: never), without a further call for each message."""
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", seconds, 0))
        self._wakes = seconds > 0


def load_failure(error: BaseException) -> wire.LoadFailed:
    """Describe why the model could not be loaded, with the traceback from the handler's own code on.

    If none of it is the handler's, an error that says it all by itself goes without; any other is a
    bug of ours, and is shown whole.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OUR_FILES):
        trace = trace.tb_next
    if trace is None and not isinstance(error, (HandlerError, SyntaxError)):
        trace = error.__traceback__
    text = "".join(traceback.format_exception(type(error), error, trace, chain=trace is not None))
    message = str(error).strip()
    summary = f"{type(error).__name__}: {message.splitlines()[0]}" if message else type(error).__name__
    out_of_memory = isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "CUDA" in message)
    return wire.LoadFailed(sendable(summary), sendable(text.rstrip()), out_of_memory)


class Prepared(NamedTuple):
    """A model that a template has loaded, and what it was told to load."""

    load: wire.Load
    runtime: Runtime


def prepare(load: wire.Load) -> Prepared:
    """Prepare the process as handlers expect it, then load the model; errors of its own code pass through."""
    sys.path.insert(0, load.model_dir)
    compat.install()
    return Prepared(load, Runtime.load(load))


def alike(load: wire.Load) -> wire.Load:
    """Leave out what a worker may be told later, and need not load a model for."""
    return msgspec.structs.replace(load, threads=1, batch_size=1)


def load_model(load: wire.Load, prepared: Prepared | None = None) -> Runtime:
    """Give the model that was prepared if it is this one, or load it; ready for the first batch."""
    if prepared is None or alike(prepared.load) != alike(load):
        prepared = prepare(load)
    runtime = prepared.runtime
    runtime.set_batch_size(load.batch_size)
    set_threads(load.threads)
    warm_up(runtime, load, runtime.config)
    return runtime


def serve(connection: Wire, prepared: Prepared | None = None) -> int:
    """Load what the first message names and run batches; returns the exit code."""
    connection.send(wire.Hello(os.getpid()))
    message = connection.receive()
    if not isinstance(message, wire.Load):
        return 0
    began = time.perf_counter()
    try:
        runtime = load_model(message, prepared)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - user code may raise anything
        failed = load_failure(error)
        print(failed.traceback, file=sys.stderr, flush=True)  # noqa: T201 - the model's log
        connection.send(failed)
        return wire.EXIT_LOAD_FAILED
    connection.send(wire.Loaded(time.perf_counter() - began, runtime.own_handle, runtime.measured()))
    while (message := connection.receive()) is not None:
        if isinstance(message, wire.Predict):
            began = time.perf_counter()
            answers = runtime.run(message.rows, partial(_send_pieces, connection, message.batch))
            connection.send(wire.Done(message.batch, answers, time.perf_counter() - began, runtime.measured()))
        elif isinstance(message, wire.Threads):
            set_threads(message.count)
        elif isinstance(message, wire.BatchSize):
            runtime.set_batch_size(message.most)
    return 0


def _send_pieces(connection: Wire, batch: int, pieces: list[tuple[int, wire.Answer]]) -> None:
    connection.send(wire.Chunk(batch, pieces))


def log_to_output() -> None:
    """What a handler logs goes to the model's log as it is (as in TorchServe), line by line."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)


def converse(descriptor: int, prepared: Prepared | None = None) -> int:
    """Serve the daemon at the other end of a socket; returns the exit code."""
    log_to_output()
    with socket.socket(fileno=descriptor) as sock:
        try:
            return serve(Wire(sock, give_memory_back), prepared)
        except (BrokenPipeError, ConnectionResetError):
            return 0  # the daemon has gone


def leave(code: int) -> NoReturn:
    """End this process; threads that the handler left running must not keep it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main(arguments: list[str]) -> int:
    descriptor, parent = map(int, arguments)
    die_with(parent)
    os.set_inheritable(descriptor, False)
    return converse(descriptor)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
