"""The units say what the plan says; systemd's own programs find no fault, and little exposure."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tsctl.service.plan import ServicePlan
from tsctl.service.service import service_text, socket_text

MOST_EXPOSURE = 2.0  # of 10, as docs/guides/systemd.md has it
ROOT = Path(__file__).parents[3]
PLAN = ServicePlan(
    name="tsctl", of_user=False, run_as=None, program=["/bin/true"], arguments=["--model-store=/srv/my models"],
    control="%t/tsctl/control.sock", state=None, addresses=["127.0.0.1:8080", "[::1]:8082"], grace=30.0,
)  # fmt: skip
OF_USER = replace(PLAN, of_user=True)
needs_analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs the Debian package systemd")


def lines_of(text: str) -> list[str]:
    return [line for line in text.replace(" \\\n    ", " ").splitlines() if line and not line.startswith("#")]


def written(folder: Path, plan: ServicePlan) -> list[str]:
    (folder / plan.unit).write_text(service_text(plan))
    if plan.socket_unit is None:
        return [str(folder / plan.unit)]
    (folder / plan.socket_unit).write_text(socket_text(plan))
    return [str(folder / plan.unit), str(folder / plan.socket_unit)]


def test_the_daemon_is_run_with_its_settings_and_reloaded_by_an_upgrade() -> None:
    lines = lines_of(service_text(PLAN))

    places = "--socket=%t/tsctl/control.sock --state-dir=%S/tsctl"
    assert f'ExecStart=/bin/true run {places} "--model-store=/srv/my models"' in lines
    assert "ExecReload=/bin/true --socket=%t/tsctl/control.sock upgrade --timeout=300" in lines


def test_a_users_own_service_has_its_places_in_the_home_directory() -> None:
    lines = lines_of(service_text(OF_USER))

    assert any("--state-dir=%h/.local/state/tsctl" in line for line in lines)
    assert {"WantedBy=default.target", "RuntimeDirectory=tsctl", "NoNewPrivileges=yes"} <= set(lines)
    assert not [line for line in lines if line.startswith(("User=", "DynamicUser=", "Protect", "StateDirectory="))]


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        pytest.param({}, "DynamicUser=yes", id="a user that exists while it runs"),
        pytest.param({"run_as": "models"}, "User=models", id="a user of the system"),
        pytest.param({}, "ProtectHome=yes", id="home directories are hidden"),
        pytest.param({"homes": True}, "ProtectHome=read-only", id="unless something is read there"),
        pytest.param({"writable": [Path("/var/log/my logs")]}, 'ReadWritePaths="/var/log/my logs"', id="logs"),
        pytest.param({"grace": 100.0}, "TimeoutStopSec=230", id="a stop is given the grace time, twice"),
        pytest.param({"groups": ["render"]}, "SupplementaryGroups=render", id="the group of a device"),
        pytest.param({}, "StateDirectory=tsctl", id="the manager's state directory"),
        pytest.param({}, "Requires=tsctl.socket", id="the sockets"),
    ],
)
def test_a_fact_is_a_line(changes: dict[str, Any], line: str) -> None:
    assert line in lines_of(service_text(replace(PLAN, **changes)))


def test_a_chosen_state_directory_is_not_the_managers() -> None:
    lines = lines_of(service_text(replace(PLAN, state=Path("/srv/state"))))

    assert not [line for line in lines if line.startswith("StateDirectory")]
    assert any("--state-dir=/srv/state" in line for line in lines)


def test_without_addresses_the_service_needs_no_socket() -> None:
    assert "tsctl.socket" not in service_text(replace(PLAN, addresses=[]))


def test_the_socket_unit_has_each_address() -> None:
    lines = lines_of(socket_text(PLAN))

    assert [line for line in lines if line.startswith("Listen")] == [
        "ListenStream=127.0.0.1:8080", "ListenStream=[::1]:8082",
    ]  # fmt: skip
    assert "FreeBind=yes" not in lines


def test_an_address_of_the_network_may_be_listened_at_before_it_is_there() -> None:
    assert "FreeBind=yes" in lines_of(socket_text(replace(PLAN, addresses=["10.0.0.5:8080"])))


@pytest.mark.parametrize(
    ("addresses", "line"),
    [
        (["[::]:8080", "0.0.0.0:8081"], "BindIPv6Only=both"),
        (["[::]:8080", "0.0.0.0:8080"], "BindIPv6Only=ipv6-only"),
    ],
)
def test_every_address_is_that_of_ipv4_too_unless_it_has_a_socket_of_its_own(addresses: list[str], line: str) -> None:
    assert line in lines_of(socket_text(replace(PLAN, addresses=addresses)))


@needs_analyze
@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "scope"),
    [
        pytest.param(PLAN, "--system", id="system"),
        pytest.param(
            replace(PLAN, run_as="root", homes=True, writable=[Path("/var/log")]), "--system", id="run as root"
        ),
        pytest.param(replace(PLAN, addresses=[]), "--system", id="without a socket"),
        pytest.param(OF_USER, "--user", id="user"),
    ],
)
def test_systemd_finds_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: ServicePlan, scope: str) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    files = written(tmp_path, plan)

    done = subprocess.run(
        ["systemd-analyze", "verify", scope, "--man=no", *files], capture_output=True, text=True, check=False
    )

    said = [line for line in done.stderr.splitlines() if str(tmp_path) in line or plan.name in line]
    assert (done.returncode, said) == (0, [])


@needs_analyze
@pytest.mark.slow
def test_the_service_exposes_little(tmp_path: Path) -> None:
    files = written(tmp_path, PLAN)

    command = ["systemd-analyze", "security", "--no-pager", "--offline=true", f"--threshold={MOST_EXPOSURE * 10:.0f}"]
    done = subprocess.run([*command, files[0]], capture_output=True, text=True, check=False)

    if "unrecognized option" in done.stderr:
        pytest.skip("needs systemd 250")
    assert done.returncode == 0, done.stdout
    found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found is not None
    assert float(found[1]) <= MOST_EXPOSURE
    assert f"{MOST_EXPOSURE} of 10" in (ROOT / "docs" / "guides" / "systemd.md").read_text()
