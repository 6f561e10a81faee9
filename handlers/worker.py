"""`python -P -m handlers.worker FD PARENT`: frames in, one batch at a time, frames out.

Load, then Predict after Predict, until the daemon closes its end. The frames have a socket of their
own (connection.py), so a handler may print whatever it likes.
"""

import contextlib
import ctypes
import logging
import os
import signal
import sys
import time
import traceback
from functools import partial
from pathlib import Path
from typing import NoReturn

from handlers import compat, wire
from handlers.connection import Connection, Disconnected, take_over
from handlers.errors import HandlerError
from handlers.rows import sendable
from handlers.runtime import Runtime
from handlers.warmup import warm_up

_PR_SET_PDEATHSIG = 1  # prctl(2)
_OUR_FILES = (f"{Path(__file__).parent}{os.sep}", "<frozen importlib")


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


def serve(connection: Connection) -> int:
    """Load what the first message names and run batches; returns the exit code.

    Raises:
        Disconnected: the handler took the connection away.
        BrokenPipeError, ConnectionResetError: the daemon is gone.
    """
    connection.send(wire.Hello(os.getpid()))
    connection.map_arena()
    message = connection.receive()
    if not isinstance(message, wire.Load):
        return 0
    began = time.perf_counter()
    try:
        runtime, optimized = load_model(message)
    except BaseException as error:  # noqa: BLE001 - user code may raise anything
        failed = load_failure(error)
        tell(failed.traceback)
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


def _send_pieces(connection: Connection, batch: int, pieces: list[tuple[int, wire.Answer]]) -> None:
    connection.send(wire.Chunk(batch, pieces))


def tell(text: str) -> None:
    """Write to the model's log, if the handler has left us one."""
    with contextlib.suppress(Exception):
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def talk(descriptor: int) -> int:
    """Serve over an inherited socket; returns the exit code. Raises nothing."""
    try:
        connection = Connection(take_over(descriptor))
        os.register_at_fork(after_in_child=connection.leave_in_child)
        return serve(connection)
    except Disconnected as error:
        tell(str(error))
        return wire.EXIT_DISCONNECTED
    except (BrokenPipeError, ConnectionResetError):
        return 0  # the daemon has gone
    except BaseException:  # noqa: BLE001 - perhaps a signal handler's, between two batches
        tell(traceback.format_exc())
        return 1


def main(arguments: list[str]) -> NoReturn:
    descriptor, parent = map(int, arguments)
    die_with(parent)
    # What a handler logs goes to the model's log as it is (as in TorchServe), line by line.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO)
    code = talk(descriptor)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the handler may have closed it
            stream.flush()
    os._exit(code)  # threads that the handler left running must not keep the process


if __name__ == "__main__":
    main(sys.argv[1:])
