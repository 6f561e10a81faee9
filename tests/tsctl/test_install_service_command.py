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


def test_both_units_are_written_and_the_next_commands_printed(invoke: Invoke, folder: Path) -> None:
    done = invoke("install-service", "--user", "--inference-address", "127.0.0.1:8090")

    assert done.exit_code == 0
    assert "ListenStream=127.0.0.1:8090\n" in (folder / "tsctl.socket").read_text()
    assert "--inference-address=127.0.0.1:8090\n" in (folder / "tsctl.service").read_text()
    assert done.stdout.splitlines() == [
        "  systemctl --user daemon-reload",
        "  systemctl --user enable --now tsctl.socket tsctl.service",
    ]
    assert "Then: export TSCTL_SOCKET=$XDG_RUNTIME_DIR/tsctl/control.sock\n" in done.stderr


def test_now_runs_them(invoke: Invoke, commands: list[str]) -> None:
    done = invoke("install-service", "--user", "--name", "scoring", "--now")

    assert done.exit_code == 0
    assert commands == ["--user daemon-reload", "--user enable --now scoring.socket scoring.service"]
    assert done.stdout == ""


def test_print_writes_nothing(invoke: Invoke, folder: Path) -> None:
    done = invoke("install-service", "--user", "--print")

    assert done.stdout.startswith(f"# {folder}/tsctl.service\n# Written by `tsctl install-service`")
    assert f"\n# {folder}/tsctl.socket\n" in done.stdout
    assert not folder.exists()


def test_its_own_units_are_replaced(invoke: Invoke, folder: Path) -> None:
    invoke("install-service", "--user")

    done = invoke("install-service", "--user", "--grace", "7")

    assert done.exit_code == 0
    assert "--grace=7" in (folder / "tsctl.service").read_text()
    assert sorted(path.name for path in folder.iterdir()) == ["tsctl.service", "tsctl.socket"]


def test_another_programs_unit_stays_unless_forced(invoke: Invoke, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "tsctl.socket").write_text("[Socket]\n")

    done = invoke("install-service", "--user")

    assert done.exit_code == 1
    assert f"error: `{folder}/tsctl.socket` was not written by `tsctl install-service`" in done.stderr
    assert not (folder / "tsctl.service").exists()
    assert invoke("install-service", "--user", "--force").exit_code == 0
    assert "ListenStream" in (folder / "tsctl.socket").read_text()


def test_remove_removes_both_units(invoke: Invoke, folder: Path) -> None:
    invoke("install-service", "--user")

    done = invoke("install-service", "--user", "--remove")

    assert done.exit_code == 0
    assert list(folder.iterdir()) == []
    assert done.stdout == "  systemctl --user daemon-reload\n"


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


def test_another_programs_unit_is_not_removed(invoke: Invoke, folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "tsctl.service").write_text("[Service]\n")

    done = invoke("install-service", "--user", "--remove")

    assert done.exit_code == 1
    assert (folder / "tsctl.service").exists()


def test_a_service_that_is_not_there_is_named(invoke: Invoke, folder: Path) -> None:
    done = invoke("install-service", "--user", "--name", "other", "--remove")

    assert done.exit_code == 1
    assert done.stderr.startswith(f"error: there is no service `other` in `{folder}`")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--user", "--run-as", "me"], "contradict each other", id="two users"),
        pytest.param(["--name", "../x"], "expected letters, digits", id="a name that is a path"),
        pytest.param(["--name", "%i"], "expected letters, digits", id="a specifier"),
    ],
)
def test_wrong_usage(invoke: Invoke, arguments: list[str], said: str) -> None:
    done = invoke("install-service", *arguments)

    assert done.exit_code == 2
    assert said in done.stderr


def test_the_socket_of_this_shell_is_not_the_services(
    invoke: Invoke, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSCTL_SOCKET", "/elsewhere/control.sock")
    invoke("install-service", "--user")
    assert "elsewhere" not in (folder / "tsctl.service").read_text()

    invoke("--socket", "/srv/control.sock", "install-service", "--user")

    assert "--socket=/srv/control.sock" in (folder / "tsctl.service").read_text()
