"""Models are served by the running daemon if it fits, else by one of our own."""

from pathlib import Path

import pytest

from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.client import DaemonClient
from tsctl.daemon.targets import ServeTarget
from tsctl.errors import CliError
from tsctl.options import address_of
from tsctl.serving.place import (
    check_joinable,
    foreign_daemon,
    mended,
    own_arguments,
    running_daemon,
)

STATUS = {"prefix": "/venv", "inferenceAddress": "http://127.0.0.1:8080"}
SOCKET = Path("/run/s.sock")


def test_no_daemon_is_none(tmp_path: Path) -> None:
    assert running_daemon(DaemonClient(tmp_path / "none.sock")) is None
    assert running_daemon(DaemonClient(tmp_path / "no" / "none.sock")) is None


def test_a_running_daemon_tells_its_status(daemon: FakeDaemon) -> None:
    daemon.answer("GET /tsctl/status", STATUS)

    assert running_daemon(DaemonClient(daemon.path)) == STATUS


@pytest.mark.parametrize("port", [None, 8080])
def test_a_daemon_of_the_same_environment_is_joined(port: int | None) -> None:
    check_joinable(STATUS, "/venv", None, port)


def test_a_daemon_of_another_environment_is_not() -> None:
    with pytest.raises(CliError, match=r"another Python environment: `/venv`, not `/other`") as caught:
        check_joinable(STATUS, "/other", None, None)

    assert "tsctl stop" in caught.value.hint


def test_a_running_daemon_keeps_its_address() -> None:
    with pytest.raises(CliError, match=r"listens on http://127.0.0.1:8080, not on port 9000") as caught:
        check_joinable(STATUS, "/venv", None, 9000)
    with pytest.raises(CliError, match=r"listens on http://127.0.0.1:8080, not on host 0.0.0.0") as other:
        check_joinable(STATUS, "/venv", "0.0.0.0", None)

    assert "`--port`" in caught.value.hint and "`--host`" in other.value.hint
    check_joinable(STATUS, "/venv", "127.0.0.1", 8080)


def test_another_users_daemon_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")

    error = foreign_daemon(SOCKET, 1001)

    assert error.message == "the daemon at `/run/s.sock` belongs to user 1001"
    assert "--socket" in error.hint
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1001")
    assert "XDG_RUNTIME_DIR" in foreign_daemon(SOCKET, None).hint


def test_a_daemon_of_our_own_loads_nothing() -> None:
    arguments = own_arguments(None, [])

    assert arguments == ["--models="]


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        (None, 9000, "127.0.0.1:9000"), ("0.0.0.0", None, "0.0.0.0:8080"), ("::1", 9000, "[::1]:9000"), ("*", 0, "*:0"),
    ],
)  # fmt: skip
def test_a_daemon_of_our_own_listens_where_it_is_asked_to(host: str | None, port: int | None, address: str) -> None:
    assert f"--inference-address={address}" in own_arguments(address_of(host, port), [])


def test_exactly_the_urls_that_were_named_are_allowed() -> None:
    target = ServeTarget(kind="url", url="https://host/m.mar")

    assert r"--allowed-urls=https://host/m\.mar" in own_arguments(None, [target])


def test_a_port_in_use_is_told_with_another_one() -> None:
    error = mended(CliError("port 8080 on 127.0.0.1 is in use by another program", "--inference-address"), None)

    assert error.hint == "choose another: `tsctl serve --port 8090 …`"
    again = mended(CliError("port 9000 on ::1 is in use by another program", "--inference-address"), "[::1]:9000")
    assert again.hint == "choose another: `tsctl serve --port 9001 …`"
