"""Under a service manager, which a stand-in plays: what it is told, its sockets, upgrades. test_systemd.py has one."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.served import PATIENCE, TSCTL, Served, accepts, eventually, running
from tests.lab.benchmarks.measuring.processes import command_of

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
        served.environment |= {"NOTIFY_SOCKET": str(served.folder / "notify"), "TSCTL_INFERENCE_ADDRESS": self.address}
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *options: str, watchdog: float = 0.0) -> "subprocess.Popen[str]":
        """Start the daemon, and return its main process when it is ready."""
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


@pytest.fixture
def manager(idle: Served) -> Iterator[ServiceManager]:
    made = ServiceManager(idle)
    yield made
    made.close()


def status_of(manager: ServiceManager) -> str:
    return next((value for name, value in reversed(manager.heard) if name == "STATUS"), "")


@pytest.mark.thin
def test_the_manager_is_told_of_each_step_and_its_socket_is_used(idle: Served, manager: ServiceManager) -> None:
    process = manager.start("--grace", "7", watchdog=1.0)
    assert idle.url == f"http://{manager.address}"
    assert idle.ask("/live").status == 200

    idle.register("echo")

    manager.wait(lambda: "1 model with 1 of 1 workers" in status_of(manager), "the status is told")
    fed = manager.heard.count(("WATCHDOG", "1"))
    manager.wait(lambda: manager.heard.count(("WATCHDOG", "1")) > fed + 2, "the watchdog is fed")
    process.send_signal(signal.SIGTERM)
    manager.wait(lambda: ("STOPPING", "1") in manager.heard, "the stop is told")
    assert ("EXTEND_TIMEOUT_USEC", "29000000") in manager.heard
    assert process.wait(PATIENCE) == 0
    assert accepts(idle.port), "the next one will answer"


def test_after_an_upgrade_the_new_daemon_speaks_and_the_main_process_ends_with_it(
    idle: Served, manager: ServiceManager
) -> None:
    main = manager.start(watchdog=1.0)
    idle.register("echo")

    upgraded = json.loads(idle.tsctl("upgrade", "--grace", "0", "--json"))

    new = upgraded["new"]["pid"]
    assert new != main.pid
    manager.heard.clear()
    manager.wait(lambda: manager.heard.count(("WATCHDOG", "1")) > 2, "the new daemon feeds the watchdog")
    assert idle.ask("/predictions/echo", b"x").status == 200
    assert main.poll() is None
    main.send_signal(signal.SIGTERM)
    manager.wait(lambda: ("STOPPING", "1") in manager.heard, "the new daemon tells its stop")
    assert main.wait(PATIENCE) == 0
    assert not running(new)
    assert accepts(idle.port)


def test_the_watchdogs_signal_ends_the_daemon_after_an_upgrade_and_shows_where_its_loop_stands(
    idle: Served, manager: ServiceManager
) -> None:
    main = manager.start(watchdog=60.0)
    idle.tsctl("upgrade", "--grace", "0")
    eventually(lambda: "shim.py" in command_of(main.pid), "the old daemon has become the stand-in")
    daemon = idle.pid

    os.kill(main.pid, signal.SIGABRT)

    _, said = main.communicate(timeout=PATIENCE)
    assert main.returncode in (-signal.SIGABRT, 128 + signal.SIGABRT)
    assert not running(daemon)
    assert "Fatal Python error: Aborted" in said
    assert "daemon/__main__.py" in said
