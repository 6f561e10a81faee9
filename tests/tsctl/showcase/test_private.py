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


def test_the_daemon_is_for_its_user_alone_listens_on_no_port_and_ends_with_the_demo(
    started: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TSCTL_MANAGEMENT_TOKEN_FILE", "TS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/nowhere")
    with private_daemon() as daemon:
        assert stat.S_IMODE(daemon.folder.stat().st_mode) == 0o700
        assert daemon.socket.parent == daemon.folder
        assert not any(name.startswith(private.FOREIGN) for name in os.environ), "settings of the user's own daemon"

    assert "--inference-address=none" in started[0]
    assert any(argument.startswith("--parent-fd=") for argument in started[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("started")
def test_a_failure_keeps_the_logs_and_names_them_unless_it_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="no room"), private_daemon():
        raise CliError("no room", "make room")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(CliError) as raised, private_daemon():
        raise CliError("3 of 100 requests failed")

    (folder,) = tmp_path.iterdir()
    assert raised.value.hint == f"the logs are in `{folder}/state/logs`"


@pytest.mark.parametrize(
    ("folder", "why"), [("x" * 100, "the socket path has"), ("none", "cannot make a temporary folder")]
)
def test_a_folder_that_does_not_serve_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, why: str
) -> None:
    (tmp_path / ("x" * 100)).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))

    with pytest.raises(CliError, match=why) as raised, private_daemon():
        pass
    assert "TMPDIR" in raised.value.hint
    assert list((tmp_path / ("x" * 100)).iterdir()) == []


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
