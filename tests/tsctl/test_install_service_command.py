"""`tsctl install-service` writes, replaces and removes its own units only, and prints the commands that follow."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.tsctl.conftest import Invoke


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a user's units."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "systemd" / "user"


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls of systemctl, which are not made."""
    called: list[str] = []

    def run(arguments: list[str], **_: Any) -> "subprocess.CompletedProcess[str]":
        called.append(" ".join(arguments[1:]))
        failed = "disable" in arguments and "broken.service" in arguments
        return subprocess.CompletedProcess(arguments, int(failed), "", "it is busy\n")

    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr("subprocess.run", run)
    return called


def test_now_runs_them(invoke: Invoke, commands: list[str]) -> None:
    done = invoke("install-service", "--user", "--name", "scoring", "--now")

    assert done.exit_code == 0
    assert commands == ["--user daemon-reload", "--user enable --now scoring.socket scoring.service"]
    assert done.stdout == ""


def test_remove_now_stops_the_service_first(invoke: Invoke, commands: list[str]) -> None:
    invoke("install-service", "--user")

    invoke("install-service", "--user", "--remove", "--now")

    assert commands == ["--user disable --now tsctl.socket tsctl.service", "--user daemon-reload"]


def test_units_of_a_service_that_cannot_be_stopped_stay(invoke: Invoke, folder: Path, commands: list[str]) -> None:
    invoke("install-service", "--user", "--name", "broken")

    done = invoke("install-service", "--user", "--name", "broken", "--remove", "--now")

    assert done.exit_code == 1
    assert "it is busy" in done.stderr
    assert (folder / "broken.service").exists()
    assert len(commands) == 1
