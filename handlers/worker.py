"""`python -P -m handlers.worker FD PARENT`: frames in, one batch at a time, frames out.

Load, then Predict after Predict, until the daemon closes its end. The frames have a socket of their
own, so a handler may print whatever it likes.
"""

import ctypes
import logging
import mmap
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

READ_SIZE = 64 * 1024  # bytes read at once; of a larger frame the rest is read to its place
_PR_SET_PDEATHSIG = 1  # prctl(2)
_OUR_FILES = (f"{Path(__file__).parent}{os.sep}", "<frozen importlib")


class Wire:
    """The worker's end of the socketpair, blocking.

    It reads what is there, so that a small frame takes one call, and one that came meanwhile takes none.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._view = memoryview(bytearray(READ_SIZE))
        self._start = self._end = 0  # of what was read and not yet taken
        self._arena = memoryview(b"")

    def send(self, message: wire.ToDaemon) -> None:
        self._sock.sendall(wire.encode(message))

    def map_arena(self) -> None:
        """Map the memory in which large values are, if the daemon shares it. Nothing may have been received yet."""
        head, descriptors, _, _ = socket.recv_fds(self._sock, READ_SIZE, 1)
        self._view[: len(head)] = head
        self._end = len(head)
        for descriptor in descriptors:
            share = self.receive()
            if isinstance(share, wire.Share):
                self._arena = memoryview(mmap.mmap(descriptor, share.size, access=mmap.ACCESS_READ))
            os.close(descriptor)  # the map has one of its own

    def receive(self) -> wire.ToWorker | None:
        """Wait for the next message; None when the daemon has closed its end."""
        while self._end - self._start < wire.LENGTH.size:
            if not self._read():
                return None
        (length,) = wire.LENGTH.unpack_from(self._view, self._start)
        self._start += wire.LENGTH.size
        there = min(length, self._end - self._start)
        body = bytearray(length)  # of its own: what is decoded are views into it
        body[:there] = self._view[self._start : self._start + there]
        self._start += there
        missing = memoryview(body)[there:]
        while missing:
            received = self._sock.recv_into(missing)
            if not received:
                return None
            missing = missing[received:]
        message: wire.ToWorker = wire.decode_for_worker(body)
        if isinstance(message, wire.Predict):
            for stored in message.stored:
                name, kind, _ = message.rows[stored.row].params[stored.param]
                value = self._arena[stored.offset : stored.offset + stored.length]
                message.rows[stored.row].params[stored.param] = (name, kind, value)
        return message

    def _read(self) -> int:
        """Read once, after what is left of the last time; gives 0 when the daemon has closed its end."""
        left = bytes(self._view[self._start : self._end])
        self._view[: len(left)] = left
        received = self._sock.recv_into(self._view[len(left) :])
        self._start, self._end = 0, len(left) + received
        return received


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


def load_model(load: wire.Load) -> Runtime:
    """Prepare the process as handlers expect it, then load the model."""
    sys.path.insert(0, load.model_dir)
    compat.install()
    runtime = Runtime.load(load)
    set_threads(load.threads)
    warm_up(runtime, load, runtime.config)
    return runtime


def serve(connection: Wire) -> int:
    """Load what the first message names and run batches; returns the exit code."""
    connection.send(wire.Hello(os.getpid()))
    connection.map_arena()
    message = connection.receive()
    if not isinstance(message, wire.Load):
        return 0
    began = time.perf_counter()
    try:
        runtime = load_model(message)
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
