"""Fork a process that is the daemon's child, and not of the process that forks.

    daemon ── template ── (between) ── new        the template forks twice,
    daemon ──┬ template                           the one between ends,
             └ new                                and the daemon, a subreaper, adopts the new one

So the death of a template hurts no process that was forked from it, the daemon learns every exit
status itself, and the kernel kills everybody when the daemon dies: PR_SET_PDEATHSIG asks for that
after the adoption, since it is about the parent of that moment.
"""

import contextlib
import ctypes
import gc
import os
import random
import signal
import sys
import time
from collections.abc import Collection

from handlers.memory import give_memory_back

_PR_SET_PDEATHSIG = 1  # prctl(2)
_ADOPTION = 10.0  # seconds that the process between may take to end


class NotFit(Exception):
    """This process must not be forked; the message says why."""


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent dies, even in the middle of a batch."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the call
        os._exit(0)


def enter_group(directory: str) -> None:
    """Enter a cgroup, with all that will be forked from this process; where that cannot be, stay where it is."""
    if directory:
        with contextlib.suppress(OSError), open(f"{directory}/cgroup.procs", "w") as file:
            file.write("0")


def fork_for(daemon: int) -> int:
    """Fork a process into a session of its own, with the daemon as its parent.

    Returns:
        0 in the new process, and there its pid.

    Raises:
        OSError: there is no memory or no pid for it.
        NotFit: it ended before it was the daemon's child.
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
        except OSError:  # the template has gone, so the daemon will not hear of this process
            os._exit(0)
        os.close(writing)
        return 0
    os.close(writing)
    os.waitpid(between, 0)
    with open(reading, "rb") as pipe:
        said = pipe.read(8)
    if len(said) < 8:
        raise NotFit("the new process ended at once, or there is no memory for it")
    return int.from_bytes(said, "little")


def _await(daemon: int) -> None:
    """Wait until the daemon has adopted this process, and tie this one's life to its."""
    end = time.monotonic() + _ADOPTION
    between = os.getppid()
    while os.getppid() == between and between != daemon and time.monotonic() < end:
        time.sleep(0.0002)
    die_with(daemon)


def open_descriptors() -> set[str]:
    """Name this process's descriptors, each with what it is: a number and a file, pipe or socket."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except OSError:
            continue  # the descriptor of the listing itself
    return found


def check_fit(descriptors: Collection[str] | None = None) -> None:
    """Check that nothing in this process would be broken or shared after a fork.

    A thread would be gone with the locks it holds; the CUDA driver does not work in a forked process;
    a connection would be everybody's.

    Args:
        descriptors: those that may be open; None for any.

    Raises:
        NotFit: one of them is there.
    """
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise NotFit(f"it has {threads} threads")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise NotFit("it has initialized CUDA")
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        pass
    else:
        raise NotFit("it has started a process")
    if descriptors is not None and (further := open_descriptors() - set(descriptors)):
        raise NotFit(f"it has opened {', '.join(sorted(each.partition(' ')[2] for each in further))}")


def freeze() -> None:
    """Before forks: give back what is free, and keep the collector's marks off the pages that are to be shared."""
    gc.collect()
    gc.disable()
    gc.freeze()
    give_memory_back()


def start_anew(output: int, directory: str) -> None:
    """After the fork: this process's own output, working directory, collector and random numbers.

    Without new seeds, all that are forked from one template would draw the same numbers.
    """
    for standard in (1, 2):
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
