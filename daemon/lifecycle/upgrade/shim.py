"""The rest of a supervised daemon after its replacement: a process that stands in for the new one.

A service manager, a container or a shell that ran `tsctl run` knows one process, and takes its end
for the daemon's. So that process stays, as this small program: it passes signals on to the present
daemon (its pid is in the pid file), reaps, and ends as the daemon ends, with its exit code.

    python -I -S shim.py PID PIDFILE

Standard library only, without imports from the daemon: the stand-in runs as long as the daemons after it do.
"""

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable

# SIGABRT is the service manager's, when its watchdog was not fed: the daemon prints where its loop stands, and ends.
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGABRT)
WAITED_FOR = {*PASSED_ON, signal.SIGCHLD}
_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


def hold_signals() -> None:
    """Block signals until the stand-in handles them: exec keeps the mask, and pending signals."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)


def become(pid: int, pid_file: str) -> int:
    """Become the stand-in; return an exit code only if exec was not possible."""
    if os.path.isfile(__file__):  # otherwise the code was removed: the process is larger, and does as well
        with contextlib.suppress(OSError):
            os.execv(sys.executable, [sys.executable, "-I", "-S", __file__, str(pid), pid_file])
    return stand_in(pid, pid_file)


def stand_in(pid: int, pid_file: str) -> int:
    """Wait until there is no daemon any more; return the exit code of the last."""
    hold_signals()
    # The daemon after next is a child of the next, and becomes ours when that ends.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    codes: dict[int, int] = {}
    while True:
        reap(codes)
        pid = daemon_of(pid_file, pid)
        if not lives(pid):
            reap(codes)
            # Never our child: if that daemon ended in order, it has removed the file.
            return exit_code(codes.get(pid, 1 if os.path.exists(pid_file) else 0))
        number = signal.sigwait(WAITED_FOR)
        if number != signal.SIGCHLD:
            with contextlib.suppress(ProcessLookupError):
                os.kill(daemon_of(pid_file, pid), number)


def daemon_of(pid_file: str, before: int, alive: Callable[[int], bool] | None = None) -> int:
    """Return the daemon's pid: the one in the file, if that process lives, else the previous one."""
    try:
        with open(pid_file) as file:
            named = int(file.read())
    except (OSError, ValueError):
        return before
    return named if (alive or lives)(named) else before


def exit_code(code: int) -> int:
    """Return the exit code in a shell's convention: 128 plus the signal, if one ended the process."""
    return code if code >= 0 else 128 - code


def lives(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def reap(codes: dict[int, int]) -> None:
    """Record the exit codes of all ended children."""
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            codes[ended[0]] = os.waitstatus_to_exitcode(ended[1])


if __name__ == "__main__":
    sys.exit(stand_in(int(sys.argv[1]), sys.argv[2]))
