"""A stand-in for systemd: holds a daemon's listening socket, and receives what the daemon tells its service manager."""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from tests.e2e.served import PATIENCE, TSCTL, Served

# systemd passes the sockets from descriptor 3 on, and the pid of the very process that it starts.
_EXECUTE = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ |= {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "web.socket", "LISTEN_PID": str(os.getpid())}
if "WATCHDOG_USEC" in os.environ:
    os.environ["WATCHDOG_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class ServiceManager:
    """What systemd is to a daemon with `Type=notify` and a socket unit.

    Attributes:
        heard: all assignments that the daemon has sent, in order.
    """

    def __init__(self, served: Served) -> None:
        self.served = served
        self.heard: list[tuple[str, str]] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listening.set_inheritable(True)
        self.address = "{}:{}".format(*self._listening.getsockname())
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._notify.bind(str(served.folder / "notify"))
        served.environment |= {
            "NOTIFY_SOCKET": str(served.folder / "notify"),
            "TSCTL_INFERENCE_ADDRESS": self.address,
        }
        self._started: list[subprocess.Popen[str]] = []

    def launch(self, *options: str, watchdog: float = 0.0) -> "subprocess.Popen[str]":
        """Start the daemon; return its main process."""
        environment = self.served.environment | ({"WATCHDOG_USEC": f"{watchdog * 1e6:.0f}"} if watchdog else {})
        process = subprocess.Popen(
            [sys.executable, "-c", _EXECUTE, str(self._listening.fileno()), str(TSCTL), "run", *options],
            env=environment,
            cwd=self.served.folder,
            pass_fds=(self._listening.fileno(),),
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def start(self, *options: str, watchdog: float = 0.0) -> "subprocess.Popen[str]":
        """Start the daemon, and return its main process when it is ready."""
        self.heard.clear()
        process = self.launch(*options, watchdog=watchdog)
        self.wait(lambda: ("READY", "1") in self.heard, "the daemon is ready")
        self.served.note_address()
        return process

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Receive messages until a condition holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"it never happened: {what}; heard {self.heard}"
            if select.select([self._notify], [], [], 0.1)[0]:
                text = self._notify.recv(4096).decode()
                self.heard += [(name, value) for name, _, value in (line.partition("=") for line in text.splitlines())]

    def close(self) -> None:
        """End whatever was started, and close the sockets."""
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)
            if process.stderr is not None:
                process.stderr.close()
        self._listening.close()
        self._notify.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.served.folder / "notify")


@contextlib.contextmanager
def service_manager(served: Served) -> Iterator[ServiceManager]:
    """Yield a service manager for a daemon that has not been started."""
    manager = ServiceManager(served)
    try:
        yield manager
    finally:
        manager.close()
