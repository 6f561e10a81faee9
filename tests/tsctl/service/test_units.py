"""The units say what the plan says; systemd's own programs find no fault, and little exposure."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from difflib import ndiff
from pathlib import Path
from typing import Any

import pytest

from tests.kit.told import Told, told_in
from tsctl.service.plan import ServicePlan
from tsctl.service.service import command_line, path, service_text, socket_text, word

MOST_EXPOSURE = 2.0  # of 10, as docs/guides/systemd.md has it
ROOT = Path(__file__).parents[3]
PLAN = ServicePlan(
    name="tsctl", of_user=False, run_as=None, program=["/bin/true"], arguments=["--model-store=/srv/my models"],
    control="%t/tsctl/control.sock", state=None, addresses=["127.0.0.1:8080", "[::1]:8082"], grace=30.0,
)  # fmt: skip
OF_USER = replace(PLAN, of_user=True)
needs_analyze = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs the Debian package systemd")


def lines_of(plan: ServicePlan) -> list[str]:
    """Return the lines of both units, without comments."""
    text = service_text(plan) + socket_text(plan)
    return [line for line in text.replace(" \\\n    ", " ").splitlines() if line and not line.startswith("#")]


def written(folder: Path, plan: ServicePlan) -> list[str]:
    (folder / plan.unit).write_text(service_text(plan))
    if plan.socket_unit is None:
        return [str(folder / plan.unit)]
    (folder / plan.socket_unit).write_text(socket_text(plan))
    return [str(folder / plan.unit), str(folder / plan.socket_unit)]


@told_in([Path(__file__).with_name("units.txt")])
def test_the_units_of_a_plan(told: Told) -> None:
    """`> {CHANGES}` of the plan: the lines of both units, or those that are others (`+`) than without (`-`)."""
    usual, made = lines_of(PLAN), list[str]()
    for line in told.lines:
        if line.startswith("> "):
            changes: dict[str, Any] = json.loads(line[2:])
            if "state" in changes:
                changes["state"] = Path(changes["state"])
            changes |= {name: [*map(Path, each)] for name, each in changes.items() if name == "writable"}
            lines = lines_of(replace(PLAN, **changes))
            other = [each for each in ndiff(usual, lines) if each.startswith(("- ", "+ "))]
            made += [line, *(other if changes else (f"| {each}" for each in lines))]
    told.compare(made)


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


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("--model-store=/srv/models", "--model-store=/srv/models", id="a plain word"),
        pytest.param("/srv/my models", '"/srv/my models"', id="a space"),
        pytest.param("100%", "100%%", id="no specifier"),
        pytest.param("$HOME", '"$$HOME"', id="no variable"),
        pytest.param('say "a\\b"', '"say \\"a\\\\b\\""', id="quotes and backslashes"),
        pytest.param("two\nlines", '"two\\nlines"', id="a line break"),
        pytest.param("a;b", '"a;b"', id="no second command"),
        pytest.param("", '""', id="an empty word"),
    ],
)
def test_word(text: str, written: str) -> None:
    assert word(text) == written


def test_a_command_line_has_an_argument_a_line_and_a_path_no_variables_to_keep() -> None:
    line = command_line(["/opt/my env/tsctl", "run"], ["--a", "--b"])

    assert line == '"/opt/my env/tsctl" run \\\n    --a \\\n    --b'
    assert path("/srv/a$b %c") == '"/srv/a$b %%c"'
