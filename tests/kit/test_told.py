"""Transcripts are compared, and written anew by hand alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.told import told_in
from tests.places import ROOT


@pytest.mark.parametrize(("ci", "refused"), [pytest.param("true", True, id="in CI"), pytest.param("", False, id="not")])
def test_a_comparison_that_fails_in_ci_is_not_written_away(ci: str, refused: bool) -> None:
    environment = os.environ | {"WRITE_TRANSCRIPTS": "1", "CI": ci}
    program = [sys.executable, "-c", "import tests.kit.told"]
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True)

    assert ("WRITE_TRANSCRIPTS is set where CI is" in done.stderr) is refused
    assert (done.returncode != 0) is refused


@pytest.mark.parametrize(
    "text", ["", "##no title\n> 1\n", "> 1\n< one\n\n## a title\n> 2\n", "## a title without lines\n\n## other\n> 1\n"]
)
def test_a_file_of_which_nothing_would_be_compared_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "said.txt").write_text(text)

    with pytest.raises(pytest.UsageError, match="a claim is a line `## TITLE`, and lines of its own below it"):
        told_in(tmp_path.glob("*.txt"))
