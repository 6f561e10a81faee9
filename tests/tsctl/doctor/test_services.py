"""`tsctl doctor` finds the services that `tsctl install-service` has written, and no others."""

import sys
from pathlib import Path

import pytest

from tests.tsctl.conftest import Invoke
from tsctl.doctor.facts import InstalledService
from tsctl.doctor.places import program_of, services, services_in
from tsctl.service.service import MARK


def test_an_installed_service_is_found_with_its_program(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert invoke("install-service", "--user", "--name", "scoring").exit_code == 0
    folder = tmp_path / "systemd" / "user"

    found = list(services({"XDG_CONFIG_HOME": str(tmp_path)}))

    assert InstalledService(str(folder / "scoring.service"), str(Path(sys.executable).parent / "tsctl"), True) in found


def test_a_program_that_has_gone_is_told_and_other_services_are_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / "nginx.service").write_text("[Service]\nExecStart=/usr/sbin/nginx\n")
    (tmp_path / "tsctl.service").write_text(f"{MARK}\n[Service]\nExecStart=/nowhere/tsctl run\n")

    assert list(services_in(tmp_path)) == [InstalledService(f"{tmp_path}/tsctl.service", "/nowhere/tsctl", False)]
    assert list(services_in(tmp_path / "nowhere")) == []


@pytest.mark.parametrize(
    ("line", "program"),
    [
        pytest.param("ExecStart=/opt/tsctl run \\\n    --a", "/opt/tsctl", id="the first word"),
        pytest.param('ExecStart="/opt/my %%env/tsctl" run \\', "/opt/my %env/tsctl", id="a quoted one"),
        pytest.param("Type=notify", "", id="none"),
        pytest.param('ExecStart="/opt', "", id="one that somebody broke"),
    ],
)
def test_program_of(line: str, program: str) -> None:
    assert program_of(f"[Service]\n{line}\n") == program
