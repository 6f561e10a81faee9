"""The end of the process that started this daemon, seen through a pipe: `--parent-fd`.

    the parent                     the daemon
    keeps the writing end ──────── has the reading end, and never gets data from it
    ends, however it ends          reads the end of the file, and stops as by SIGTERM

The kernel closes a dead process's descriptors, so the parent runs no code for this, and kill -9 is enough.
PR_SET_PDEATHSIG would not do: it means the thread that started the daemon, and does not reach a daemon behind a
stand-in (upgrade/shim.py). An upgrade hands the descriptor on, and both daemons watch it until the old one has gone.
"""

import asyncio
import os
import stat
from collections.abc import Callable

from tsctl.daemon.core.errors import StartError

_READ = 4096  # bytes


def check_parent(descriptor: int) -> None:
    """Take over the reading end, which workers do not inherit.

    Raises:
        StartError: the descriptor is not open, or is neither a pipe nor a socket.
    """
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            os.set_inheritable(descriptor, False)
            os.set_blocking(descriptor, False)  # during an upgrade two processes read: one of them finds nothing
            return
    except (OSError, OverflowError):
        raise StartError(f"descriptor {descriptor} of `--parent-fd` is not open") from None
    raise StartError(
        f"descriptor {descriptor} of `--parent-fd` is neither a pipe nor a socket",
        "pass the reading end of a pipe, and keep the writing end open",
    )


def watch_parent(descriptor: int, gone: Callable[[], None]) -> None:
    """Call `gone` once, as soon as no process holds the other end any more. Data is read and dropped."""
    loop = asyncio.get_running_loop()

    def readable() -> None:
        try:
            if os.read(descriptor, _READ):
                return
        except BlockingIOError:
            return
        except OSError:  # a socket's peer was killed with data unread: ECONNRESET
            pass
        loop.remove_reader(descriptor)
        gone()

    loop.add_reader(descriptor, readable)
