"""The facts of a service come from its options and this installation, and are checked before anything is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kit.said import said_in
from tsctl.daemon.setting_values import parse_path
from tsctl.daemon.tables import SETTINGS
from tsctl.errors import CliError
from tsctl.service import plan as planning
from tsctl.service.plan import ServicePlan, make_plan


@pytest.fixture
def in_opt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tsctl be installed where any service sees it; the tests themselves may run in /tmp."""
    monkeypatch.setattr(planning, "_program", lambda: ["/opt/tsctl/bin/tsctl"])
    monkeypatch.setattr(planning, "_installed", lambda: [Path("/opt/tsctl")])


def planned(*, of_user: bool = True, run_as: str | None = None, **flags: str) -> ServicePlan:
    arguments = [f"--{name.replace('_', '-')}={value}" for name, value in flags.items()]
    return make_plan(flags, arguments, name="tsctl", of_user=of_user, run_as=run_as)


def test_each_address_is_one_of_the_socket_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.properties").write_text("inference_address=http://127.0.0.1:8085\n")
    three = planned(inference_address="[::1]:8080", metrics_address="localhost:8082", management_address="[::1]:8080")
    monkeypatch.setenv("TSCTL_INFERENCE_ADDRESS", "127.0.0.1:9999")  # of this shell, which does not count

    assert three.addresses == ["[::1]:8080", "127.0.0.1:8082"]
    assert planned(ts_config=str(tmp_path / "config.properties")).addresses == ["127.0.0.1:8085"]
    assert planned().addresses == ["127.0.0.1:8080"]
    assert planned(inference_address="none").socket_unit is None


def test_chosen_places_are_the_daemons_and_may_be_written(tmp_path: Path) -> None:
    plan = planned(state_dir=str(tmp_path), socket="/run/a%b/control.sock", grace="7")

    assert plan.state == tmp_path
    assert list(plan.writable) == [tmp_path]
    assert plan.control == "/run/a%%b/control.sock"
    assert plan.arguments == ["--grace=7"]
    assert plan.grace == 7.0


@said_in("would_not_start.txt")
def test_a_setting_that_would_not_start_is_refused(given: str) -> str:
    with pytest.raises(CliError) as raised:
        planned(of_user=True, **json.loads(given))
    return f"{raised.value.message}\nhint: {raised.value.hint}"


@pytest.mark.usefixtures("in_opt")
def test_a_path_that_the_services_user_cannot_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed_at(path: Path, _account: Any) -> Path | None:
        return Path("/root") if path == Path("/usr/share") else None

    monkeypatch.setattr(planning, "closed_at", closed_at)

    with pytest.raises(CliError, match="cannot read `/usr/share`: `/root` is closed to others") as raised:
        planned(of_user=False, model_store="/usr/share")
    assert "--run-as" in raised.value.hint
    planned(of_user=False, model_store="/usr/lib")


@pytest.mark.usefixtures("in_opt")
@pytest.mark.parametrize("setting", ["state_dir", "socket", "model_store"])
def test_a_path_in_a_tmp_that_the_service_does_not_see_is_refused(
    monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setattr(planning, "closed_at", lambda *_: None)

    with pytest.raises(CliError, match="cannot see `/tmp`: it has a /tmp of its own"):
        planned(of_user=False, run_as=None, **{setting: "/tmp"})


@pytest.mark.usefixtures("in_opt")
@pytest.mark.parametrize("setting", [each.name for each in SETTINGS if each.opens == "write"])
def test_a_directory_to_write_must_be_there(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    monkeypatch.setattr(planning, "closed_at", lambda *_: None)

    with pytest.raises(CliError, match="no directory at `/srv/nowhere`, which the service is to write"):
        planned(of_user=False, **{setting: "/srv/nowhere"})


def test_what_the_daemon_opens_is_a_path() -> None:
    assert [row.name for row in SETTINGS if row.opens and row.parse is not parse_path] == []
