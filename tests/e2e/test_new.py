"""`tsctl new`: what it writes works at once, in a folder of its own."""

import subprocess
import sys

import pytest

from tests.e2e.served import PATIENCE, Served
from tsctl.commands.new import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_the_written_project_is_checked_and_tested_as_it_stands(idle: Served, kind: str) -> None:
    idle.tsctl("new", "made", f"--{kind}")
    project = idle.folder / "made"
    answer = idle.tsctl("check", str(project / "handler.py"), str(project / KINDS[kind][2]))
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=project, env=idle.environment, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip

    assert answer.strip()
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "2 passed" in tested.stdout
