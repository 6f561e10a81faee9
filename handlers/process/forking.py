"""Fork a process whose parent is the daemon, not the forking process.

    daemon ── template ── (between) ── new        the template forks twice,
    daemon ──┬ template                           the one between ends,
             └ new                                and the daemon, a subreaper, adopts the new one

The death of a template therefore hurts no process forked from it, the daemon reaps every exit status itself, and the
kernel kills all of them when the daemon dies: PR_SET_PDEATHSIG is set after the adoption, because the setting applies
to the parent at the time of the call.
"""

import ctypes
import gc
import os
import random
import select
import sys
import time
from collections.abc import Callable, Collection
from functools import partial

from tsctl.handlers.own_process import die_with, give_memory_back
from tsctl.handlers.process.threads import set_threads

PIPE_BYTES = 65536
_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED
_ADOPTION = 10.0  # seconds until the intermediate process must have ended


class NotForkable(Exception):
    """This process must not be forked; the message gives the reason."""


def fork_for(daemon: int) -> int:
    """Fork a process into its own session, with the daemon as its parent.

    Returns:
        0 in the new process; the new process's pid in the template.

    Raises:
        OSError: there is no memory or no pid for a process.
        NotForkable: the new process ended before the daemon adopted it.
    """
    reading, writing = os.pipe()
    try:
        between = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if between == 0:
        os.close(reading)
        try:
            new = os.fork()
        except OSError:
            os._exit(1)
        if new:
            os._exit(0)
        os.setsid()
        _await(daemon)
        try:
            os.write(writing, os.getpid().to_bytes(8, "little"))
        except OSError:  # the template is gone, so the daemon will not learn of this process
            os._exit(0)
        os.close(writing)
        return 0
    os.close(writing)
    os.waitpid(between, 0)
    with open(reading, "rb") as pipe:
        said = pipe.read(8)
    if len(said) < 8:
        raise NotForkable("the new process ended at once, or there is no memory for it")
    return int.from_bytes(said, "little")


def _await(daemon: int) -> None:
    """Wait until the daemon has adopted this process, then die with the daemon."""
    end = time.monotonic() + _ADOPTION
    between = os.getppid()
    while os.getppid() == between and between != daemon and time.monotonic() < end:
        time.sleep(0.0002)
    die_with(daemon)


def start_apart(threads: int, cpus: Collection[int], work: Callable[[], bytes]) -> Callable[[], bytes]:
    """Start a function in a forked process with so many threads for each operation; return what waits for its result.

    The waiting function must be called: it raises ChildProcessError if the process has ended without a result; the
    message gives its signal or exit code.

    Args:
        cpus: the processors that the process may use; empty for all of this one's.

    Raises:
        OSError: there is no memory or no pid for a process.
    """
    reading, writing = os.pipe()
    ours = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        child = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if child == 0:
        code = 1
        try:
            die_with(ours)
            os.close(reading)
            gc.enable()
            if cpus:
                os.sched_setaffinity(0, cpus)
            set_threads(threads)
            result = work()
            with open(writing, "wb") as pipe:
                pipe.write(result)
            code = 0
        except BaseException as error:  # noqa: BLE001 - the parent's stack must not run a second time
            print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    return partial(_result_of, child, reading)


def _result_of(child: int, reading: int) -> bytes:
    """Read until the process has ended: one that it has started itself may keep the pipe open for longer."""
    result = bytearray()
    with open(os.pidfd_open(child)) as ended, open(reading, "rb", buffering=0) as pipe:
        os.set_blocking(reading, False)
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        poll.register(ended, select.POLLIN)
        over = False
        while not over:
            over = any(descriptor == ended.fileno() for descriptor, _ in poll.poll())
            while data := pipe.read(PIPE_BYTES):
                result += data
            over |= data == b""
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise ChildProcessError(f"signal {-code}" if code < 0 else f"exit code {code}")
    return bytes(result)


def open_descriptors() -> set[str]:
    """Return this process's descriptors: each a number and its file, pipe or socket."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except OSError:
            continue  # the descriptor of the listing itself
    return found


def check_fit(descriptors: Collection[str] | None = None) -> None:
    """Check that a fork of this process breaks and shares nothing.

    A fork loses other threads but keeps the locks they hold, the CUDA driver does not work in a forked process, and
    open connections would be shared.

    Args:
        descriptors: the descriptors that may be open; None for any.

    Raises:
        NotForkable: the process has a thread, a child, an initialized CUDA driver or a further descriptor.
    """
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise NotForkable(f"it has {threads} threads")
    if driver_is_initialized():
        raise NotForkable("it has initialized CUDA, as `torch.cuda.is_available()` does")
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        pass
    else:
        raise NotForkable("it has started a process")
    if descriptors is not None and (further := open_descriptors() - set(descriptors)):
        raise NotForkable(f"it has opened {', '.join(sorted(each.partition(' ')[2] for each in further))}")


def driver_is_initialized() -> bool:
    """Return whether this process has initialized the CUDA driver, by whichever library; loads and changes nothing.

    `torch.cuda.is_initialized` tells of torch's own use only, and counting GPUs is enough to break forks. Before
    `cuInit` every function of the driver returns CUDA_ERROR_NOT_INITIALIZED, as its documentation says.
    """
    try:
        count = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_NOW).cuDeviceGetCount
    except (OSError, AttributeError):
        return False  # nothing has loaded it, or it is another library
    return bool(count(ctypes.byref(ctypes.c_int())) != _NOT_INITIALIZED)


def freeze(*, collect: bool) -> None:
    """Prepare for forks: release free memory, and keep the collector from writing to the shared pages.

    Args:
        collect: look for unreachable objects first, which takes 0.15 s after an import of torch.
    """
    if collect:
        gc.collect()
    gc.disable()
    gc.freeze()
    give_memory_back()


def start_anew(stdout: int, stderr: int, directory: str) -> None:
    """Set up a forked process: its own output, working directory, garbage collector and random seeds.

    Without new seeds, all forks of one template would draw the same random numbers.
    """
    for standard, output in ((1, stdout), (2, stderr)):
        os.dup2(output, standard)
        os.close(output)
    os.chdir(directory)
    gc.enable()
    random.seed()
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed()
    if torch is not None:
        torch.seed()
