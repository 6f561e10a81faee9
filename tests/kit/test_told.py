"""Transcripts are compared, and written anew by hand alone."""

import os
import subprocess
import sys

import pytest

from tests.places import ROOT


@pytest.mark.parametrize(("ci", "refused"), [pytest.param("true", True, id="in CI"), pytest.param("", False, id="not")])
def test_a_comparison_that_fails_in_ci_is_not_written_away(ci: str, refused: bool) -> None:
    environment = os.environ | {"WRITE_TRANSCRIPTS": "1", "CI": ci}
    program = [sys.executable, "-c", "import tests.kit.told"]
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True)

    assert ("WRITE_TRANSCRIPTS is set where CI is" in done.stderr) is refused
    assert (done.returncode != 0) is refused
