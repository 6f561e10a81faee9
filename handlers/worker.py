"""`python -P -m tsctl.handlers.worker FD PARENT`: frames in, one batch at a time, frames out.

Receives Load, then Predict after Predict, until the daemon closes its end. Frames use a socket of their own
(process/connection.py), so a handler may print freely. A worker forked from a template (template.py) starts in
`converse`, possibly with its model already loaded.
"""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import msgspec

from tsctl.handlers import wire
from tsctl.handlers.gpu_memory import HeldMemory
from tsctl.handlers.names import COMPILE, ONNX_RUNTIME, split_handler
from tsctl.handlers.own_process import die_with, enter_group, give_memory_back, log_to_output, step_back_if_asked
from tsctl.handlers.process.connection import DaemonConnection, Disconnected, take_over
from tsctl.handlers.process.forking import start_apart
from tsctl.handlers.process.schedule import alone
from tsctl.handlers.process.threads import handlers_choice, keep_handlers_choice, set_threads, threads_in_force
from tsctl.handlers.requests.excerpt import excerpt, message_of
from tsctl.handlers.requests.gpu_context import breakage, touch_gpus
from tsctl.handlers.requests.out_of_memory import is_out_of_memory
from tsctl.handlers.requests.tracebacks import describe_error, has_author_frames
from tsctl.handlers.runtime import compat
from tsctl.handlers.runtime.compat import look_in
from tsctl.handlers.runtime.runtime import Runtime
from tsctl.handlers.runtime.warmup import warm_up
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.texts.encodable import class_of, sendable

if TYPE_CHECKING:
    from tsctl.handlers.process.ranks.leader import Leader

_PROGRAMS = ("worker", "template")
VISIBLE = "CUDA_VISIBLE_DEVICES"  # read by CUDA's driver when a process first calls it


def load_failure(error: BaseException, model_dir: str = "") -> wire.LoadFailed:
    """Describe why the model could not be loaded, with the traceback starting in the handler's code.

    Without a frame of the handler, an error that explains itself gets no traceback; any other is our bug and is shown
    in full.

    Args:
        model_dir: the directory of the handler's files.
    """
    kind = type(error)  # not `isinstance`, which reads an instance's `__class__`, too
    bare = issubclass(kind, (HandlerError, SyntaxError)) and not has_author_frames(error.__traceback__)
    text = describe_error(error, model_dir, bare=bare)
    name, message = class_of(error), message_of(error).strip()
    summary = excerpt(f"{name}: {message.splitlines()[0]}" if message else name)
    refused = excerpt(sendable(error.refused)) if kind is HandlerError and isinstance(error, HandlerError) else ""
    return wire.LoadFailed(sendable(summary), sendable(text), is_out_of_memory(error), refused=refused)


class Prepared(NamedTuple):
    """A model that a template has loaded, with its Load message.

    Attributes:
        optimized: the outcomes of its optimisations; None if not yet applied.
    """

    load: wire.Load
    runtime: Runtime
    optimized: list[wire.Optimized] | None = None


def prepare(load: wire.Load) -> Prepared:
    """Prepare the process as handlers expect, then load the model; errors of the handler's code propagate."""
    if load.in_place:
        # Bytecode is found by its source's size and second: a second save within a second would load the first one's.
        sys.dont_write_bytecode = True
    sys.path.insert(0, load.model_dir)
    if Path(sys.argv[0]).stem in _PROGRAMS:  # a handler that parses its arguments has those of a script without any
        sys.argv[:] = [str(Path(load.model_dir, f"{split_handler(load.handler)[0]}.py"))]
    compat.install()
    look_in(Path(load.model_dir))
    return Prepared(load, runtime_class(load.mode).load(load))


def runtime_class(mode: wire.Mode) -> type[Runtime]:
    """Return the kind of runtime that runs rows in this mode."""
    if mode == "continuous":
        from tsctl.handlers.runtime.steps import SteppedRuntime

        return SteppedRuntime
    if mode == "async":
        from tsctl.handlers.runtime.tasks import TaskRuntime

        return TaskRuntime
    return Runtime


def prepare_for_all(load: wire.Load) -> Prepared:
    """Prepare a model in a template, including optimisations, so that workers share the optimised weights.

    They are checked in forked processes, with the threads of the worker for whom this is done: a template runs nothing
    in parallel. `compile` and `onnxruntime` are left to each worker: both start threads.
    """
    prepared = prepare(load)
    if {COMPILE, ONNX_RUNTIME} & {*(load.optimize or ())}:
        return prepared
    apart = partial(start_apart, load.threads, load.cpus)
    optimized = prepared.runtime.optimize(load.optimize, Path(load.model_dir), load.batch_size, apart)
    return prepared._replace(optimized=optimized)


def alike(load: wire.Load) -> wire.Load:
    """Return the Load without the fields that can change without reloading the model."""
    return msgspec.structs.replace(load, threads=1, batch_size=1, cpus=[], group="")


def load_model(load: wire.Load, prepared: Prepared | None = None) -> tuple[Runtime, list[wire.Optimized]]:
    """Return the prepared model if it matches `load`, else load and optimise; ready for the first batch."""
    if prepared is None or alike(prepared.load) != alike(load):
        set_threads(load.threads)  # a template has one; what a handler starts while it loads shares these
        before = threads_in_force()
        prepared = prepare(load)
        if own := keep_handlers_choice(before):
            count = "1 thread" if own == 1 else f"{own} threads"
            prepared.runtime.notes.append(
                f"the handler has set {count} for each operation; its worker's share is {load.threads}"
            )
    runtime, optimized = prepared.runtime, prepared.optimized
    runtime.set_batch_size(load.batch_size)
    set_threads(load.threads)
    if load.ranks is not None and load.ranks.rank and not load.ranks.each:
        return runtime, []  # no batch runs here
    if optimized is None:
        beside = partial(start_apart, 1, load.cpus)
        optimized = runtime.optimize(load.optimize, Path(load.model_dir), load.batch_size, beside=beside)
    if runtime.config.get("warmup"):
        warm_up(runtime, load, runtime.config)
    return runtime, optimized


def join_ranks(load: wire.Load, connection: DaemonConnection) -> "Leader | None":
    """Prepare the process for a model that several processes or GPUs run; at rank 0, start the others.

    Raises:
        OSError: a rank cannot be started.
    """
    if load.gpus:
        os.environ[VISIBLE] = ",".join(load.gpus)
    if load.ranks is None or load.ranks.rank:
        return None
    from tsctl.handlers.process.ranks.leader import Leader

    return Leader(load, connection.send, end_with)


def raise_if_gpu_lost() -> None:
    """Raise the error that has broken the GPU context while the model loaded, if one has.

    What a warm-up has begun may fail only now, and an optimisation that failed was given up without a further look.
    """
    error = touch_gpus()
    if error is not None:
        raise error


def serve(
    connection: DaemonConnection, prepared: Prepared | None = None, end: Callable[[int, str], None] | None = None
) -> int:
    """Load the model of the first message and run batches; return the exit code.

    Args:
        end: ends this process with an exit code, and a sentence for the model's log; by default `end_with`.

    Raises:
        Disconnected: the handler closed the connection.
        BrokenPipeError: the daemon is gone.
        ConnectionResetError: the daemon is gone.
    """
    connection.send(wire.Hello(os.getpid()))
    connection.map_arena()
    message = connection.receive()
    if not isinstance(message, wire.Load):
        return 0
    began = time.perf_counter()
    leader = None
    try:
        enter_group(message.group)  # before any handler code, which can start processes
        if message.cpus:
            os.sched_setaffinity(0, message.cpus)  # before a library starts threads, which inherit the affinity
        leader = join_ranks(message, connection)
        memory = HeldMemory(message.gpus) if message.gpus else None
        runtime, optimized = load_model(message, prepared)
        raise_if_gpu_lost()
        if message.ranks is None:
            conversation = alone(message.mode, runtime, connection, message.threads)
        else:
            from tsctl.handlers.process.ranks.running import together

            conversation = together(message.mode, runtime, connection, leader)
        give_memory_back()  # copies of weights: 800 MiB of 1 600, in 60 ms; a worker that is busy at once has no pause
    except BaseException as error:  # noqa: BLE001 - user code may raise anything
        failed = load_failure(error, message.model_dir)
        if not (message.quiet and failed.refused):
            tell(failed.traceback)
        lost = breakage(error)
        if lost:
            connection.send(wire.GpuLost(sendable(lost)))
            failed.passing = True
        connection.send(failed if leader is None else leader.load_failed(failed))
        return wire.EXIT_GPU_LOST if lost else wire.EXIT_LOAD_FAILED
    if leader is not None and (others := leader.loaded()) is not None:
        connection.send(others)
        return wire.EXIT_LOAD_FAILED
    seconds = time.perf_counter() - began
    notes = [sendable(each) for each in runtime.notes]
    measured = runtime.measured()
    held, most = memory.after_load() if memory is not None else [], runtime.most_rows
    connection.send(
        wire.Loaded(
            seconds, runtime.own_handle, measured, optimized, runtime.declared, notes, held, most, handlers_choice()
        )
    )
    if memory is not None:
        memory.keep_telling(lambda now: connection.send(wire.GpuMemory(now)))
    runtime.gpu.leave = partial(leave_gpu, connection, end or end_with)
    conversation.converse()
    runtime.close()
    return 0


def tell(text: str) -> None:
    """Write to the model's log, unless the handler closed stderr."""
    with contextlib.suppress(Exception):
        print(text, file=sys.stderr, flush=True)  # noqa: T201


def converse(descriptor: int, prepared: Prepared | None = None) -> int:
    """Serve the daemon at the other end of an inherited socket; return the exit code. Never raises."""
    log_to_output()
    try:
        connection = DaemonConnection(take_over(descriptor), give_memory_back)
        os.register_at_fork(after_in_child=connection.leave_in_child)
        return serve(connection, prepared)
    except Disconnected as error:
        tell(str(error))
        return wire.EXIT_DISCONNECTED
    except (BrokenPipeError, ConnectionResetError):
        return 0  # the daemon is gone
    except BaseException as error:  # noqa: BLE001 - possibly raised by a signal handler between two batches
        tell(describe_error(error))
        return 1


def leave(code: int) -> NoReturn:
    """End this process immediately, even if the handler left threads running."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # the handler may have closed the stream
            stream.flush()
    os._exit(code)


def end_with(code: int, text: str) -> NoReturn:
    """End this process from any thread, with a sentence in the model's log."""
    tell(text)
    leave(code)


def leave_gpu(connection: DaemonConnection, end: Callable[[int, str], None], why: str) -> None:
    """End this process from any thread: its GPU context is broken. The daemon gives what is in flight to others."""
    try:
        connection.send(wire.GpuLost(sendable(why)))
    finally:
        end(wire.EXIT_GPU_LOST, f"this worker ends: {why}")


def main(arguments: list[str]) -> int:
    descriptor, parent = map(int, arguments)
    die_with(parent)
    step_back_if_asked()
    return converse(descriptor)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
