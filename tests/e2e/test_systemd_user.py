"""The units of `install-service --user` under a real `systemd --user`: `python -m tests.lab systemd`."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.e2e.served import PATIENCE, TSCTL, eventually, free_port
from tests.e2e.systemd import Systemd, booted, missing

pytestmark = pytest.mark.systemd

USER = "games"  # a user of every Debian
HOME, RUNTIME = "/srv/home", "/run/home"
MANAGER = f"""\
[Service]
User={USER}
Type=notify
ExecStart=/lib/systemd/systemd --user
Environment=HOME={HOME} XDG_RUNTIME_DIR={RUNTIME}
Delegate=yes
KillMode=mixed
"""


class Session:
    """A user with a service manager."""

    def __init__(self, systemd: Systemd) -> None:
        self.systemd = systemd
        self.port = free_port()
        systemd.run("install", "--directory", f"--owner={USER}", "--mode=700", HOME, RUNTIME)
        systemd.file("/etc/systemd/system/manager.service").write_text(MANAGER)
        systemd.run("systemctl", "daemon-reload")
        systemd.run("systemctl", "start", "manager.service")

    def run(self, *command: str) -> str:
        places = (f"HOME={HOME}", f"XDG_RUNTIME_DIR={RUNTIME}")
        user = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
        return self.systemd.run(*user, "env", *places, *command)

    def tsctl(self, *arguments: str) -> str:
        return self.run(str(TSCTL), *arguments)

    def show(self, name: str) -> str:
        return self.run("systemctl", "--user", "show", "tsctl.service", f"--property={name}", "--value").strip()

    @property
    def status(self) -> Any:
        return json.loads(self.tsctl("status", "--json"))

    def ask(self) -> int:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", "/live")
            return connection.getresponse().status


@pytest.fixture
def session() -> Iterator[Session]:
    lacking = missing()
    if lacking:
        pytest.skip(f"a systemd of our own needs {lacking}")
    with booted() as systemd:
        yield Session(systemd)


def test_a_users_own_service_serves_is_reloaded_restarted_and_removed(session: Session) -> None:
    session.tsctl("install-service", "--user", "--inference-address", f"127.0.0.1:{session.port}", "--now")
    first = session.status  # the socket is where `tsctl` looks by itself
    assert first["stateDir"] == f"{HOME}/.local/state/tsctl"
    assert session.ask() == 200

    session.run("systemctl", "--user", "reload", "tsctl.service")
    second = session.status
    assert second["pid"] != first["pid"]
    assert session.show("MainPID") == str(first["pid"])
    session.run("kill", "-9", str(first["pid"]), str(second["pid"]))
    assert session.ask() == 200  # the connection waits

    eventually(lambda: session.show("NRestarts") == "1", "systemd restarts the daemon")
    session.tsctl("install-service", "--user", "--remove", "--now")
    with pytest.raises(ConnectionRefusedError):
        session.ask()
