"""`python -P -m handlers.worker FD PARENT`: frames in, one batch at a time, frames out.

Load, then Predict after Predict, until the daemon closes its end. The frames have a socket of their
own, so a handler may print whatever it likes.
"""

import ctypes
import logging
import os
import signal
import socket
import sys
import time
import traceback
from functools import partial
from pathlib import Path

from handlers import compat, wire
from handlers.errors import HandlerError
from handlers.rows import sendable
from handlers.runtime import Runtime
from handlers.warmup import warm_up

_PR_SET_PDEATHSIG = 1  # prctl(2)
_OUR_FILES = (f"{Path(__file__).parent}{os.sep}", "<frozen importlib")


class Wire:
    """The worker's end of the socketpair, blocking."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send(self, message: wire.ToDaemon) -> None:
        self._sock.sendall(wire.encode(message))

    def receive(self) -> wire.ToWorker | None:
        """Wait for the next message; None when the daemon has closed its end."""
        head = self._exactly(wire.LENGTH.size)
        if head is None:
            return None
        body = self._exactly(wire.LENGTH.unpack(head)[0])
        return None if body is None else wire.decode_for_worker(body)

    def _exactly(self, count: int) -> bytearray | None:
        buffer = bytearray(count)
        view = memoryview(buffer)
        while view:
            received = self._sock.recv_into(view)
            if not received:
                return None
            view = view[received:]
        return buffer


def die_with(parent: int) -> None:
    """Have the kernel kill this process when the daemon dies, even in the middle of a batch."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the call
        os._exit(0)


def set_threads(count: int) -> None:
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)


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


def load_model(load: wire.Load) -> tuple[Runtime, list[wire.Optimized]]:
    """Prepare the process as handlers expect it, then load the model and make it faster."""
    sys.path.insert(0, load.model_dir)
    compat.install()
    runtime = Runtime.load(load)
    set_threads(load.threads)
    optimized = runtime.optimize(load.optimize, Path(load.model_dir), load.batch_size)
    warm_up(runtime, load, runtime.config)
    return runtime, optimized


def serve(connection: Wire) -> int:
    """Load what the first message names and run batches; returns the exit code."""
    connection.send(wire.Hello(os.getpid()))
    message = connection.receive()
    if not isinstance(message, wire.Load):
        return 0
    began = time.perf_counter()
    try:
        runtime, optimized = load_model(message)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - user code may raise anything
        failed = load_failure(error)
        print(failed.traceback, file=sys.stderr, flush=True)  # noqa: T201 - the model's log
        connection.send(failed)
        return wire.EXIT_LOAD_FAILED
    seconds = time.perf_counter() - began
    connection.send(wire.Loaded(seconds, runtime.own_handle, runtime.measured(), optimized))
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


def main(arguments: list[str]) -> int:
    descriptor, parent = map(int, arguments)
    die_with(parent)
    # What a handler logs goes to the model's log as it is (as in TorchServe), line by line.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
    os.set_inheritable(descriptor, False)
    with socket.socket(fileno=descriptor) as sock:
        try:
            return serve(Wire(sock))
        except (BrokenPipeError, ConnectionResetError):
            return 0  # the daemon has gone


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads that the handler left running must not keep the process
