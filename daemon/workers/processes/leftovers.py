"""Kill leftovers of workers: processes that left their worker's session, and whose parents have ended.

    daemon ── worker ── (between) ── left        the handler forks twice, with setsid(2),
    daemon ──┬ worker                            the one between ends,
             └ left                              and the daemon, a subreaper, adopts what is left

A worker's process group is killed along (reaper.py). Processes outside the group come to the daemon, and are
killed when the next worker ends, and at the latest when the daemon stops. A child of the daemon is spared if
known (workers, templates), in the daemon's own session (pip, NVML's reader), older than this module's `Leftovers`, or a
daemon that replaces this one.

Killed processes leave their own children to the daemon in turn, so the search repeats until there are none: a handler
that forks faster than it is killed can win that race. (Not where a cgroup is available: spawn.py.)
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.machine.processes import PROC, child_pids, stat_of
from tsctl.handlers.orders import MARK as MARK

AGAIN = 0.05  # seconds between two searches
ROUNDS = 40  # searches in a row, at most


class Child(NamedTuple):
    """A process whose parent is this one; `session` is the pid of its session's leader."""

    pid: int
    session: int


def children_of(parent: int, proc: Path = PROC) -> list[Child]:
    """Return a process's children that have not ended. Reads every process if the kernel has no list."""
    try:
        pids = child_pids(parent, proc)
    except OSError:  # without CONFIG_PROC_CHILDREN
        pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    found = [child_of(pid, parent, proc) for pid in pids]
    return [child for child in found if child is not None]


def child_of(pid: int, parent: int, proc: Path = PROC) -> Child | None:
    """Read one process; None if it is not a child of `parent`, or has ended."""
    fields = stat_of(pid, proc)
    return Child(pid, int(fields[3])) if fields is not None and int(fields[1]) == parent else None


def marked(pid: int, mark: str) -> bool:
    """Return whether a process, or its template, was started with a variable of this daemon."""
    try:
        return mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


class Leftovers:
    """Kills leftovers of workers. The search starts when a worker has ended.

    Attributes:
        spared: pids of children that are no worker's.

    Args:
        known: whether a child is a worker or a template.
        settled: whether the pids of all those are known; not while one is being forked.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        known: Callable[[int], bool],
        settled: Callable[[], bool],
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._known = known
        self._settled = settled
        self._pid = os.getpid()
        self._timer: Timer | None = None
        self._rounds = 0
        self._looking = False
        # The program before exec(2) may have had children; if this process is a container's first, all orphans come to
        # it.
        self.spared = {child.pid for child in children_of(self._pid)}
        self._strangers = self._pid == 1

    def beware_of_strangers(self) -> None:
        """Kill only processes started with `MARK` from now on: a daemon after the next becomes a child of this one."""
        self._strangers = True

    def look(self) -> None:
        """Kill the leftovers of a worker that has ended, and their children, until there is nothing more."""
        self._rounds = ROUNDS
        self._begin()

    def close(self) -> None:
        """Stop searching."""
        self._rounds = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def kill_all(self) -> None:
        """Kill all leftovers, known or not. Blocks for a moment; nothing may be started any more."""
        self.close()
        for _ in range(ROUNDS):
            left = [child for child in children_of(self._pid) if self._ours(child)]
            if not left:
                return
            for child in left:
                self._kill(child)
            time.sleep(AGAIN / 5)
            for child in left:
                _reap(child.pid)

    def _begin(self) -> None:
        if self._looking:
            return
        self._looking = True
        # In a thread: where the kernel has no list of children, a busy machine has thousands of processes to read.
        seen = self._loop.run_in_executor(None, children_of, self._pid)
        seen.add_done_callback(self._seen)

    def _seen(self, seen: "asyncio.Future[list[Child]]") -> None:
        self._looking = False
        if seen.cancelled() or seen.exception() is not None or self._rounds <= 0:
            return
        self._rounds -= 1
        again = not self._settled()
        for child in () if again else seen.result():
            # Read again: the process may have been reaped here since, and its number may be another's.
            now = child_of(child.pid, self._pid)
            if now is not None and not self._known(now.pid) and self._ours(now):
                self._kill(now)
                again = True
        if again:
            self._timer = self._clock.later(AGAIN, self._again)

    def _again(self) -> None:
        self._timer = None
        self._begin()

    def _ours(self, child: Child) -> bool:
        if child.pid in self.spared or child.session == os.getsid(0):
            return False
        return not self._strangers or marked(child.pid, f"{MARK}={self._pid}")

    def _kill(self, child: Child) -> None:
        try:
            if os.getpgid(child.pid) == child.pid:
                os.killpg(child.pid, signal.SIGKILL)
            else:
                os.kill(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        except PermissionError:  # now another user's
            self.spared.add(child.pid)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
