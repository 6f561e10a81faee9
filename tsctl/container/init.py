"""Process 1 of a container: starts one program, passes signals on to it, and reaps all orphans.

The kernel gives process 1 two duties. Orphans of the whole container become its children, and stay zombies until it
waits for them. A signal that process 1 has no handler for is lost, so `docker stop` would wait for its timeout while
the daemon is still importing.

An upgrade replaces the daemon, and a stand-in of it remains here as the program (daemon/lifecycle/upgrade/shim.py).
"""

import os
import signal
from collections.abc import Mapping, Sequence

_PASSED_ON = frozenset({
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH,
})  # fmt: skip


def supervise(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program until it ends; return its exit code, 128 + N if signal N ended it.

    Blocks. Signals that the terminal sends reach the whole process group anyway, and are not sent twice.

    Args:
        arguments: the first is the path of the program.
    """
    signals = _PASSED_ON | {signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        program = os.posix_spawn(arguments[0], list(arguments), dict(environment), setsigmask=before)
        while True:
            status = _reap(program)
            if status is not None:
                return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
            told = signal.sigwaitinfo(signals)
            from_a_process = told.si_code <= 0  # SI_USER, SI_TKILL, …; of the kernel's own they are positive
            if told.si_signo != signal.SIGCHLD and from_a_process:
                os.kill(program, told.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _reap(program: int) -> int | None:
    """Reap all children that have ended; return the wait status of the program if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == program:
            found = status
