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


def test_a_running_daemon_tells_its_status_and_none_is_none(daemon: FakeDaemon, tmp_path: Path) -> None:
    daemon.answer("GET /tsctl/status", STATUS)

    assert running_daemon(DaemonClient(daemon.path)) == STATUS
    assert running_daemon(DaemonClient(tmp_path / "none.sock")) is None
    assert running_daemon(DaemonClient(tmp_path / "no" / "none.sock")) is None


@pytest.mark.parametrize(
    ("prefix", "host", "port", "why", "hint"),
    [
        ("/other", None, None, "another Python environment: `/venv`, not `/other`", "tsctl stop"),
        ("/venv", None, 9000, "listens on http://127.0.0.1:8080, not on port 9000", "`--port`"),
        ("/venv", "0.0.0.0", None, "listens on http://127.0.0.1:8080, not on host 0.0.0.0", "`--host`"),
    ],
)
def test_a_running_daemon_is_joined_if_its_environment_and_address_fit(
    prefix: str, host: str | None, port: int | None, why: str, hint: str
) -> None:
    for fitting in ((None, None), (None, 8080), ("127.0.0.1", 8080)):
        check_joinable(STATUS, "/venv", *fitting)

    with pytest.raises(CliError, match=why) as caught:
        check_joinable(STATUS, prefix, host, port)
    assert hint in caught.value.hint


def test_another_users_daemon_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")

    error = foreign_daemon(SOCKET, 1001)

    assert error.message == "the daemon at `/run/s.sock` belongs to user 1001"
    assert "--socket" in error.hint
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1001")
    assert "XDG_RUNTIME_DIR" in foreign_daemon(SOCKET, None).hint


@pytest.mark.parametrize(
    ("host", "port", "targets", "more"),
    [
        pytest.param(None, None, [], [], id="it restores and loads nothing"),
        (None, 9000, [], ["--inference-address=127.0.0.1:9000"]),
        ("0.0.0.0", None, [], ["--inference-address=0.0.0.0:8080"]),
        ("::1", 9000, [], ["--inference-address=[::1]:9000"]),
        ("*", 0, [], ["--inference-address=*:0"]),
        pytest.param(None, None, ["https://host/m.mar"], [r"--allowed-urls=https://host/m\.mar"], id="just this URL"),
    ],
)
def test_a_daemon_of_our_own(host: str | None, port: int | None, targets: list[str], more: list[str]) -> None:
    served = [ServeTarget(kind="url", url=url) for url in targets]

    assert sorted(own_arguments(address_of(host, port), served)) == sorted(["--models=", *more])


def test_a_port_in_use_is_told_with_another_one() -> None:
    error = mended(CliError("port 8080 on 127.0.0.1 is in use by another program", "--inference-address"), None)

    assert error.hint == "choose another: `tsctl serve --port 8090 …`"
    again = mended(CliError("port 9000 on ::1 is in use by another program", "--inference-address"), "[::1]:9000")
    assert again.hint == "choose another: `tsctl serve --port 9001 …`"
