"""README is short, and names only what exists. Its commands are run by test_documented.py."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.served import TSCTL

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = (README, *(file.read_text() for file in (ROOT / "docs").rglob("*.md")))
VERBS = {verb for page in PAGES for verb in re.findall(r"(?:`|^)tsctl ([a-z]+)", page, re.MULTILINE)}


def test_it_has_at_most_5000_characters() -> None:
    assert len(README) <= 5000


def test_the_two_commands_that_need_nothing_are_there() -> None:
    assert "`make demo`" in README
    assert "`make test`" in README


def test_its_picture_is_whole_and_loads_nothing_from_another_host() -> None:
    picture = (ROOT / "docs" / "pictures" / "terminal.svg").read_text()

    assert "](docs/pictures/terminal.svg)" in README
    for shown in ("tsctl&#160;archive", "tsctl&#160;register", "tsctl&#160;bench", "Batches&#160;by&#160;size"):
        assert shown in picture
    assert "url(" not in picture.replace("url(#", "")


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_that_readme_and_docs_name_exists(verb: str) -> None:
    helped = subprocess.run([TSCTL, verb, "--help"], capture_output=True, text=True)

    assert helped.returncode == 0, helped.stderr
