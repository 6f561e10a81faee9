"""An archive's requirements: installed when the operator says so, and else named."""

import zipfile
from pathlib import Path

import pytest

from tests.e2e.served import Served


def write_wheel(directory: Path, word: str) -> Path:
    """Make a package by hand, so that nothing is fetched."""
    wheel = directory / "tiny_dependency-1.0-py3-none-any.whl"
    info = "tiny_dependency-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("tiny_dependency.py", f"WORD = {word!r}\n")
        file.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-dependency\nVersion: 1.0\n")
        file.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    file = tmp_path / "requirements.txt"
    file.write_text(f"--no-index\n{write_wheel(tmp_path, 'tiny')}\n")
    return file


def test_they_are_installed_once_beside_what_the_daemon_has_and_by_a_check(idle: Served, requirements: Path) -> None:
    archive = idle.store / idle.pack("needs_tiny", requirements_file=requirements)
    checked = idle.run("check", str(archive), str(requirements), "--install-requirements")
    assert (checked.returncode, checked.stdout) == (0, "tiny msgspec\n"), checked.stderr
    assert not (idle.folder / "state").exists(), "a check leaves nothing"

    idle.start("--install-requirements")
    idle.tsctl("register", archive.name)
    made = list((idle.folder / "state" / "environments").iterdir())

    idle.register("needs_tiny", name="again", requirements_file=requirements)

    assert idle.ask("/predictions/needs_tiny", b"x").body == b"tiny msgspec"
    assert idle.ask("/predictions/again", b"x").body == b"tiny msgspec"
    assert list((idle.folder / "state" / "environments").iterdir()) == made
    assert len(made) == 1


def test_what_pip_said_is_told(idle: Served, tmp_path: Path) -> None:
    idle.start("--install-requirements")
    file = tmp_path / "requirements.txt"
    file.write_text("--no-index\nthere-is-no-such-package==7\n")

    archive = idle.pack("echo", requirements_file=file)
    failed, answer = idle.run("register", archive), idle.command("POST", f"/models?url={archive}")
    checked = idle.run("check", str(idle.store / archive), "--install-requirements")

    assert failed.returncode == checked.returncode == 1
    assert (answer.status, answer.json["type"]) == (400, "ModelException")
    assert "Custom pip package installation failed for model echo" in failed.stderr
    for each in (failed, checked):
        assert "No matching distribution found for there-is-no-such-package==7" in each.stderr
    assert not list((idle.folder / "state" / "environments").iterdir())


@pytest.mark.thin
def test_without_leave_nothing_is_installed_and_the_log_says_so(served: Served, requirements: Path) -> None:
    failed = served.run("register", served.pack("needs_tiny", requirements_file=requirements))

    assert failed.returncode == 1
    assert "No module named 'tiny_dependency'" in failed.stderr
    assert "The archive's `requirements.txt` is not installed: `--install-requirements` of `ts" in failed.stderr
    assert "--install-requirements" in served.tsctl("logs")
    assert not (served.folder / "state" / "environments").exists()
