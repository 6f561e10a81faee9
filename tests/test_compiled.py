"""A compiled wheel is built once for all programs that run on it, and anew when it would be another one."""

import subprocess
from pathlib import Path

import pytest

from tests import compiled


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in place of this one, whose wheels are empty files."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("daemon/a.py", "hatch_build.py", "tests/test_a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text(".compiled/\n")
    monkeypatch.setattr(compiled, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def built(project: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that wheels were built into."""
    folders: list[Path] = []

    def build(into: Path) -> None:
        folders.append(into)
        into.mkdir(parents=True, exist_ok=True)
        (into / "tsctl-1.whl").touch()

    monkeypatch.setattr(compiled, "build", build)
    return folders


@pytest.mark.parametrize(
    ("changed", "builds"),
    [
        pytest.param("", 1, id="nothing"),
        pytest.param("tests/test_a.py", 1, id="a test"),
        pytest.param("daemon/a.py", 2, id="a module"),
        pytest.param("hatch_build.py", 2, id="how it is built"),
        pytest.param("daemon/new.py", 2, id="a new file"),
    ],
)
def test_after_a_change_of(project: Path, built: list[Path], changed: str, builds: int) -> None:
    into = project / ".compiled" / "wheel"
    compiled.build_once(into)
    if changed:
        (project / changed).write_text("x = 1\n")

    assert compiled.build_once(into) == into / "tsctl-1.whl"
    assert len(built) == builds


def test_words_for_the_compiler_make_another_wheel(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiled.digest()
    monkeypatch.setenv("CFLAGS", "-O0")

    assert compiled.digest() != before
