"""The folder of the demo's daemon."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from tsctl.errors import CliError
from tsctl.showcase import private
from tsctl.showcase.private import DemoDaemon, private_daemon


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Daemons that were to be started, in a temporary folder of the test; none is."""
    calls: list[tuple[str, ...]] = []
    for name in [name for name in os.environ if name.startswith(private.FOREIGN)]:
        monkeypatch.delenv(name)  # put back after the test
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(private, "start", lambda arguments, state, descriptors: calls.append(tuple(arguments)))
    return calls


def test_only_its_user_can_enter_the_folder(started: list[tuple[str, ...]]) -> None:
    with private_daemon() as daemon:
        assert stat.S_IMODE(daemon.folder.stat().st_mode) == 0o700
        assert daemon.socket.parent == daemon.folder


def test_the_daemon_listens_on_no_port_and_ends_with_the_demo(started: list[tuple[str, ...]]) -> None:
    with private_daemon():
        pass

    assert "--inference-address=none" in started[0]
    assert any(argument.startswith("--parent-fd=") for argument in started[0])


@pytest.mark.usefixtures("started")
def test_the_folder_is_removed_at_the_end(tmp_path: Path) -> None:
    with private_daemon():
        pass

    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("started")
def test_a_failure_keeps_the_logs_and_names_them(tmp_path: Path) -> None:
    with pytest.raises(CliError) as raised, private_daemon():
        raise CliError("3 of 100 requests failed")

    (folder,) = tmp_path.iterdir()
    assert raised.value.hint == f"the logs are in `{folder}/state/logs`"


@pytest.mark.usefixtures("started")
def test_a_failure_with_a_remedy_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="no room"), private_daemon():
        raise CliError("no room", "make room")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("started")
def test_the_settings_of_the_users_own_daemon_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TSCTL_MANAGEMENT_TOKEN_FILE", "TS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    with private_daemon():
        left = {name for name in os.environ if name.startswith(private.FOREIGN)}

    assert left == set()


def test_a_path_too_long_for_a_socket_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))

    with pytest.raises(CliError, match="the socket path has") as raised, private_daemon():
        pass
    assert "TMPDIR" in raised.value.hint
    assert list(long.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))

    with pytest.raises(CliError, match="cannot make a temporary folder") as raised, private_daemon():
        pass
    assert "TMPDIR" in raised.value.hint


@pytest.mark.parametrize(
    ("workers", "pid"),
    [
        pytest.param([], None, id="none"),
        pytest.param([{"pid": 7, "status": "UNLOADING"}], None, id="none that is ready"),
        pytest.param([{"pid": 7, "status": "UNLOADING"}, {"pid": 8, "status": "READY"}], 8, id="the one that is ready"),
    ],
)
def test_the_worker_is_the_one_that_is_ready(
    workers: list[dict[str, object]], pid: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = DemoDaemon(Path("nowhere"))
    monkeypatch.setattr(daemon.client, "json", lambda method, target: [{"workers": workers}])

    assert daemon.worker("digits") == pid
