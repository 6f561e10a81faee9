"""The daemon's child processes: watch their ends, and adopt orphans.

Death is a pidfd. The leader of a process group takes the group along. Where workers are forked
from templates the daemon is a subreaper (prctl(2)): forked workers become its children, and so do
leftovers of workers, which are killed when a worker ends (leftovers.py), and are reaped here, now and then:
uvloop keeps SIGCHLD to itself.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Callable

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.workers.processes.leftovers import Leftovers

REAP_EVERY = 5.0  # seconds
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


class Process:
    """A child that leads its own session, from now to its end.

    Attributes:
        returncode: as `subprocess` counts: negative for a signal; None while the process runs.
        node: the node of a cluster that the process runs on; empty for this machine.
        lost: why the process counts as ended although its end was not seen; empty if it was.
    """

    node = ""
    lost = ""

    def __init__(self, pid: int, returncode: int | None = None) -> None:
        self.pid = pid
        self.returncode = returncode

    def __repr__(self) -> str:
        return f"<Process {self.pid} {'runs' if self.returncode is None else self.returncode}>"

    def kill(self) -> None:
        """Kill the process, which need not exist any more, and its group now."""
        self._signal(signal.SIGKILL)

    def suspend(self) -> bool:
        """Stop the process and its group, until `resume`; return whether they run on this machine."""
        return self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the process and its group go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> bool:
        if self.returncode is None:  # otherwise the number may be another process's
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
                return True
        return False


def _wait_for(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Children:
    """All processes of workers and templates.

    Attributes:
        expected: how many are being forked whose pids are not known yet.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self.expected = 0
        self._loop = loop
        self._clock = clock
        self._known: dict[int, Process] = {}
        self._watched: dict[int, int] = {}  # pid → descriptor
        self._leftovers: Leftovers | None = None
        self._timer: Timer | None = None
        self._spared: set[int] = set()

    def __repr__(self) -> str:
        return f"<Children {sorted(self._known)}, {self.expected} expected>"

    def adopt(self) -> None:
        """Make orphans of this process's descendants its children, and reap the unknown ones.

        Raises:
            OSError: the kernel does not support this.
        """
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        if self._timer is None:
            self._reap_later()

    def clear_up(self) -> None:
        """Kill leftovers of workers, from now on; for a program whose other children are registered by `spare`.

        Raises:
            OSError: the kernel does not support adoption.
        """
        self._leftovers = Leftovers(self._loop, self._clock, lambda pid: pid in self._known, lambda: not self.expected)
        self.adopt()

    def spare(self, pid: int) -> None:
        """Ignore a child that is neither a worker's nor in this session: its end is handled elsewhere."""
        self._spared.add(pid)
        if self._leftovers is not None:
            self._leftovers.spared.add(pid)

    def handed_over(self) -> None:
        """Note that another daemon has replaced this one: later daemons are not ours to kill."""
        if self._leftovers is not None:
            self._leftovers.beware_of_strangers()

    def close(self) -> None:
        """Stop watching for orphans."""
        if self._timer is not None:
            self._timer.cancel()
        if self._leftovers is not None:
            self._leftovers.close()

    def kill_leftovers(self) -> None:
        """Kill all leftovers, last: whatever ends from now on is reaped here, and no `ended` is called any more."""
        for pid in list(self._watched):
            self._unwatch(pid)
        if self._leftovers is not None:
            self._leftovers.kill_all()

    def watch_child(self, pid: int, ended: Callable[[], None], wait: Callable[[], int] | None = None) -> Process:
        """Watch a child.

        Args:
            ended: called once, when the child has ended and been reaped.
            wait: reaps the child and returns its return code.

        Raises:
            OSError: there is no descriptor for the child.
        """
        process = Process(pid)
        descriptor = os.pidfd_open(pid)

        def end() -> None:
            self._unwatch(pid)
            process.kill()  # its children; before it is reaped, so that the number is still its own
            process.returncode = wait() if wait else _wait_for(pid)
            del self._known[pid]
            if self._leftovers is not None:
                self._leftovers.look()
            ended()

        self._known[pid] = process
        self._watched[pid] = descriptor
        self._loop.add_reader(descriptor, end)
        return process

    def _unwatch(self, pid: int) -> None:
        descriptor = self._watched.pop(pid)
        self._loop.remove_reader(descriptor)
        os.close(descriptor)

    def _reap_later(self) -> None:
        def look() -> None:
            self._reap_later()  # first: it goes on whatever the other raises
            self.reap_orphans()

        self._timer = self._clock.later(REAP_EVERY, look)

    def reap_orphans(self) -> None:
        """Reap ended children that no other code waits for.

        Children that the daemon itself runs (pip) are in its session, and are left to their callers.
        Children that are just being forked may be any, so nothing is done until they are known.
        """
        while not self.expected:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            # A known child hides those behind it until its own end is handled; the next look follows.
            if found is None or found.si_pid in self._known or found.si_pid in self._spared:
                return
            if os.getsid(found.si_pid) == os.getsid(0):
                return
            os.waitpid(found.si_pid, os.WNOHANG)
