"""The units of `tsctl install-service` under a real systemd: `python -m tests.lab systemd`."""

import http.client
import json
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.load import Connecting, repeating
from tests.e2e.served import ARCHIVES, PATIENCE, eventually, free_port
from tests.e2e.systemd import Systemd, booted, missing
from tsctl.daemon.marfile import Packing, write_archive

pytestmark = pytest.mark.systemd

CONTROL = "/run/scoring/control.sock"
SERVICE, SOCKET = "scoring.service", "scoring.socket"
# The tests wait for the watchdog; users have 30 s.
QUICK = "[Service]\nWatchdogSec=2\nTimeoutAbortSec=2\nRestartSec=100ms\n[Unit]\nStartLimitBurst=100\n"


class Service:
    """The installed service, with the model `echo`."""

    def __init__(self, systemd: Systemd, folder: Path) -> None:
        self.systemd = systemd
        self.port = free_port()
        systemd.run("mkdir", "/srv/models")
        for name in ("echo", "obey"):
            packing = Packing(model_name=name, version="1.0", handler=str(ARCHIVES / f"{name}.py"))
            shutil.copy(write_archive(packing, folder), systemd.file("/srv/models"))
        systemd.run("mkdir", "-p", f"/etc/systemd/system/{SERVICE}.d")
        systemd.file(f"/etc/systemd/system/{SERVICE}.d/quick.conf").write_text(QUICK)
        systemd.file("/etc/scoring.env").write_text("TSCTL_TEMPLATE=false\n")
        systemd.tsctl(
            "install-service", "--name", "scoring", "--model-store", "/srv/models", "--grace", "5",
            "--inference-address", f"127.0.0.1:{self.port}", "--now",
        )  # fmt: skip
        systemd.tsctl("register", "echo.mar", socket=CONTROL)

    def ask(self, target: str = "/predictions/echo", body: bytes | None = b"x", kind: str = "text/plain") -> int:
        """Return the status of a request on a connection of its own."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("POST" if body else "GET", target, body, {"Content-Type": kind})
            with connection.getresponse() as response:
                response.read()
                return response.status

    @property
    def status(self) -> Any:
        return json.loads(self.systemd.tsctl("status", "--json", socket=CONTROL))

    @property
    def pid(self) -> int:
        """The daemon's pid, as systemd's namespace has it."""
        return int(self.status["pid"])

    @property
    def main(self) -> int:
        return int(self.systemd.show(SERVICE, "MainPID"))

    @property
    def restarts(self) -> int:
        return int(self.systemd.show(SERVICE, "NRestarts"))

    def signal(self, pid: int, number: signal.Signals) -> None:
        self.systemd.run("kill", f"-{number.value}", str(pid))

    def restarted(self, before: int) -> None:
        """Wait until systemd has restarted the daemon, and a request is answered."""
        eventually(lambda: self.restarts > before, "systemd restarts the daemon")
        assert self.ask() == 200


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    lacking = missing()
    if lacking:
        pytest.skip(f"a systemd of our own needs {lacking}")
    with booted() as systemd:
        yield Service(systemd, tmp_path_factory.mktemp("store"))


def test_it_serves_as_a_user_without_rights_and_tells_its_status(service: Service) -> None:
    assert service.ask() == 200

    process = Path(f"/proc/{service.systemd.pid}/root/proc/{service.main}")
    facts = dict(line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if ":\t" in line)
    assert 61184 <= int(facts["Uid"].split()[0]) <= 65519  # the range of dynamic users
    assert int(facts["CapEff"], 16) == int(facts["CapBnd"], 16) == 0
    assert facts["NoNewPrivs"] == "1"
    assert facts["Seccomp"] == "2"
    eventually(
        lambda: service.systemd.show(SERVICE, "StatusText") == (
            f"Serving 1 model with 1 of 1 workers, at http://127.0.0.1:{service.port}"
        ),
        "the status is told",
    )  # fmt: skip


def test_each_worker_has_a_cgroup_of_its_own(service: Service) -> None:
    group = service.systemd.show(SERVICE, "ControlGroup")
    workers = list(service.systemd.file(f"/sys/fs/cgroup{group}").glob("tsctl-*/*/cgroup.procs"))

    assert [len(file.read_text().split()) for file in workers] == [1]


def test_a_daemon_that_is_killed_comes_back_with_its_models_and_refuses_no_connection(service: Service) -> None:
    before = service.restarts

    clients = Connecting(partial(service.ask, "/live", None))
    with repeating(clients.once):
        service.signal(service.main, signal.SIGKILL)
        service.restarted(before)

    assert clients.refused == 0


def test_restarts_refuse_no_connection(service: Service) -> None:
    clients = Connecting(partial(service.ask, "/live", None))
    with repeating(clients.once):
        for _ in range(3):
            answered, main = clients.answered, service.main
            service.systemd.run("systemctl", "restart", SERVICE)
            assert service.main != main
            eventually(partial(clients.went_on, answered), "a client is answered")

    assert clients.refused == 0
    assert service.ask() == 200


def test_a_reload_is_an_upgrade(service: Service) -> None:
    main, daemon = service.main, service.pid

    clients = Connecting(partial(service.ask, "/live", None))
    with repeating(clients.once):
        service.systemd.run("systemctl", "reload", SERVICE)

    assert clients.refused == 0
    assert service.main == main
    assert service.pid != daemon
    assert service.ask() == 200


@pytest.mark.parametrize("reloaded", [False, True], ids=["started by systemd", "after a reload"])
def test_a_daemon_whose_loop_stands_still_is_killed_and_restarted(service: Service, *, reloaded: bool) -> None:
    service.systemd.run("systemctl", "restart", SERVICE)
    if reloaded:
        service.systemd.run("systemctl", "reload", SERVICE)
        eventually(
            lambda: "shim.py" in service.systemd.run("ps", "-o", "args=", str(service.main)), "the old one is gone"
        )
    before = service.restarts

    service.signal(service.pid, signal.SIGSTOP)

    service.restarted(before)
    assert "Watchdog timeout (limit 2s)" in service.systemd.run("journalctl", "-u", SERVICE, "--no-pager")


def test_a_stop_of_the_sockets_waits_for_what_runs_and_is_no_failure(service: Service) -> None:
    service.systemd.tsctl("register", "obey.mar", socket=CONTROL)
    answers: list[int] = []
    asking = threading.Thread(
        target=lambda: answers.append(service.ask("/predictions/obey", b'{"do": "wait /srv/go"}', "application/json"))
    )
    asking.start()
    eventually(lambda: any(model["running"] for model in service.status["models"]), "the request runs")

    service.systemd.run("systemctl", "stop", "--no-block", SOCKET)

    eventually(lambda: service.systemd.show(SERVICE, "StatusText").startswith("Stopping"), "the service stops")
    service.systemd.run("touch", "/srv/go")
    asking.join()
    assert answers == [200]
    eventually(lambda: service.systemd.show(SOCKET, "ActiveState") == "inactive", "both have stopped")
    assert service.systemd.show(SERVICE, "ActiveState") == "inactive"
    assert service.systemd.show(SERVICE, "Result") == "success"
    with pytest.raises(ConnectionRefusedError):
        service.ask()
    service.systemd.run("systemctl", "start", SERVICE)
    assert service.ask() == 200


def test_it_can_be_removed(service: Service) -> None:
    main = service.main

    service.systemd.tsctl("install-service", "--name", "scoring", "--remove", "--now")

    assert not service.systemd.file(f"/proc/{main}").exists()
    assert not service.systemd.file(f"/etc/systemd/system/{SERVICE}").exists()
    assert "could not be found" in service.systemd.run("systemctl", "status", SERVICE, check=False)
