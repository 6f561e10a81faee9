"""A template process for a test, which imports no torch; the test is the daemon."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tsctl.handlers import orders, wire

_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
_PROGRAM = "import sys; from tsctl.handlers import template as t; t.FIRST = ({first}); sys.exit(t.main(sys.argv[1:]))"
PATIENCE = 30.0  # seconds


def status_of(pid: int) -> dict[str, str]:
    """Read a process's status, proc(5)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


class Worker:
    """A forked process and the daemon's ends of its socket and its output."""

    def __init__(self, pid: int, sock: socket.socket, output: int) -> None:
        self.pid = pid
        self.sock = sock
        self.output = output

    def tell(self, message: wire.ToWorker) -> None:
        self.sock.sendall(wire.encode(message))

    def hear(self) -> wire.ToDaemon:
        head = self.sock.recv(wire.LENGTH.size, socket.MSG_WAITALL)
        said: wire.ToDaemon = wire.decode_for_daemon(self.sock.recv(wire.LENGTH.unpack(head)[0], socket.MSG_WAITALL))
        return said

    def end(self) -> int:
        """Close the socket, and give the exit code."""
        self.sock.close()
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def printed(self) -> str:
        with open(self.output, "rb", closefd=False) as pipe:
            return pipe.read().decode()


class Peer:
    """A template, from the daemon's side."""

    def __init__(self, sock: socket.socket, pid: int, opened: ExitStack) -> None:
        self.sock = sock
        self.pid = pid
        self._opened = opened
        opened.enter_context(sock)
        sock.settimeout(PATIENCE)

    def hear(self) -> orders.Report:
        report: orders.Report = orders.decode_report(self.sock.recv(orders.LARGEST))
        return report

    def order(self, order: orders.Order) -> tuple[orders.Report, socket.socket, int]:
        """Send an order; give the report, and our ends of what the new process got."""
        kind = socket.SOCK_SEQPACKET if isinstance(order, orders.Grow) else socket.SOCK_STREAM
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        self._opened.enter_context(ours).settimeout(PATIENCE)
        reading, writing = os.pipe()
        self._opened.callback(os.close, reading)
        socket.send_fds(self.sock, [orders.encode(order)], [theirs.fileno(), writing, writing])
        report = self.hear()
        theirs.close()
        os.close(writing)
        return report, ours, reading

    def fork(self, directory: Path, threads: int = 1) -> Worker:
        report, ours, reading = self.order(orders.Fork(threads, str(directory)))
        assert isinstance(report, orders.Forked), report
        return Worker(report.pid, ours, reading)

    def grow(self, modules: list[str], load: wire.Load | None = None) -> "Peer":
        report, ours, _ = self.order(orders.Grow(modules, load))
        assert isinstance(report, orders.Forked), report
        return Peer(ours, report.pid, self._opened)


@contextmanager
def template(first: str = "", environment: dict[str, str] | None = None) -> Iterator[Peer]:
    """Run a template that has imported only what `first` names, as a tuple's items."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM.format(first=first), str(theirs.fileno()), str(os.getpid())],
        pass_fds=(theirs.fileno(),),
        env=os.environ | dict.fromkeys(orders.THREAD_VARIABLES, "1") | (environment or {}),
        start_new_session=True,
    )
    theirs.close()
    opened = ExitStack()
    try:
        yield Peer(ours, process.pid, opened)
    finally:
        opened.close()
        process.wait(PATIENCE)
        with suppress(ChildProcessError):  # what a failed test has left
            while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG)) is not None:
                assert found.si_pid
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
