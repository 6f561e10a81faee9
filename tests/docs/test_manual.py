"""The manual pages: fresh, whole, and without an error of roff."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from docs.generate.manual import pages, write
from tsctl.cli import all_verbs
from tsctl.terminal.examples import all_examples

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "man"
PAGES = pages()


def shown(name: str) -> str:
    """Return a page as `man` shows it; roff's warnings fail the test."""
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("needs the Debian program groff")
    command = [groff, "-man", "-Tascii", "-P-c", "-P-b", "-P-o", "-P-u", "-ww", "-rLL=10000n"]
    done = subprocess.run(command, input=PAGES[name], capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout


def test_the_pages_that_are_shipped_are_fresh() -> None:
    shipped = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}

    assert shipped == PAGES, "run `python -m tests.lab references`"


def test_the_wheel_has_them_where_man_looks() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    data = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert data["docs/man"] == "share/man/man1"


@pytest.mark.parametrize("verb", all_verbs())
def test_a_page_has_the_options_and_examples_of_its_verb(verb: str) -> None:
    text = shown(f"tsctl-{verb}.1")

    for example in all_examples()[verb]:
        assert example.line in text
    assert "--help" in text
    assert "130" in text.partition("EXIT STATUS")[2]


def test_the_root_page_leads_to_all_others() -> None:
    text = shown("tsctl.1")

    assert [verb for verb in all_verbs() if f"tsctl-{verb}(1)" not in text] == []
    assert "TSCTL_SOCKET" in text


def test_the_page_of_a_verb_that_is_gone_is_removed(tmp_path: Path) -> None:
    (tmp_path / "tsctl-gone.1").touch()

    write(tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == set(PAGES)
