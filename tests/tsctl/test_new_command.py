"""`tsctl new`: what is written, and what is left alone."""

import shutil
from pathlib import Path

import pytest

from tests.tsctl.conftest import Invoke
from tsctl.commands import new


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No script is run: those of the templates import Pillow or torch."""
    monkeypatch.setattr(new, "_make", lambda directory, script: None)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", new.KINDS)
def test_a_project_has_a_handler_and_a_test(invoke: Invoke, tmp_path: Path, kind: str) -> None:
    result = invoke("new", tmp_path / "made", f"--{kind}")

    assert result.exit_code == 0
    names = {file.name for file in (tmp_path / "made").iterdir()}
    assert {"handler.py", "test_handler.py"} <= names
    _, script, sample = new.KINDS[kind]
    assert {script or sample} <= names


@pytest.mark.usefixtures("quick")
def test_the_next_commands_name_the_directory_and_the_sample(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("new", tmp_path / "my mood", "--text")

    lines = [line.strip() for line in result.stdout.splitlines()]
    assert lines == [
        f"cd '{tmp_path}/my mood'",
        "tsctl check handler.py sample.txt",
        "pytest",
        "tsctl serve handler.py --watch",
        "curl http://127.0.0.1:8080/predictions/my-mood -T sample.txt",
    ]


def test_a_function_is_the_default(invoke: Invoke, tmp_path: Path) -> None:
    invoke("new", tmp_path / "made")

    written = (tmp_path / "made" / "handler.py").read_text()
    assert written == (new.TEMPLATES / "function" / "handler.py").read_text()


def test_two_kinds_are_refused_by_name(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("new", tmp_path / "made", "--image", "--text")

    assert result.exit_code == 2
    assert "only one of `--text` and `--image` can be given" in result.stderr
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("there", ["directory", "file"])
def test_nothing_that_exists_is_changed(invoke: Invoke, tmp_path: Path, there: str) -> None:
    place = tmp_path / "made"
    if there == "file":
        place.write_text("mine")
    else:
        place.mkdir()
    result = invoke("new", place)

    assert result.exit_code == 1
    assert f"error: `{place}` exists already" in result.stderr
    assert place.read_text() == "mine" if there == "file" else list(place.iterdir()) == []


def test_a_missing_parent_is_named_with_the_command_that_makes_it(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("new", tmp_path / "none" / "made")

    assert result.exit_code == 1
    assert f"there is no directory `{tmp_path}/none`" in result.stderr
    assert "mkdir -p" in result.stderr


def test_a_script_that_fails_is_shown(invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    template = tmp_path / "templates" / "image"
    shutil.copytree(new.TEMPLATES / "image", template)
    (template / "make_sample.py").write_text("raise OSError('no room for pixels')\n")
    monkeypatch.setattr(new, "TEMPLATES", template.parent)
    result = invoke("new", tmp_path / "made", "--image")

    assert result.exit_code == 1
    assert "`make_sample.py` ended with exit code 1" in result.stderr
    assert "no room for pixels" in result.stderr


def test_every_template_is_offered() -> None:
    folders = {folder.name for folder in new.TEMPLATES.iterdir() if folder.is_dir() and folder.name != "__pycache__"}

    assert folders == set(new.KINDS)
