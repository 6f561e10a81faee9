"""The comparison of two interpreters: that equal ones agree, and that it finds one that differs, breaks, or ends."""

import sys
from pathlib import Path

import pytest

from tests.lab.fuzz.compiled import OUTCOMES, Side, compare
from tests.lab.fuzz.targets import target
from tests.places import ROOT

_PROGRAM = "import sys\nfor number in range(9):\n    print({}, flush=True)"


def side(says: str) -> Side:
    """Return an interpreter that prints this expression for each input."""
    return [sys.executable, "-c", _PROGRAM.format(says)], ROOT


@pytest.mark.slow
def test_sources_agree_with_themselves(tmp_path: Path) -> None:
    sources = [sys.executable, "-m", "tests.lab.fuzz.compiled", OUTCOMES, "forms", str(tmp_path), "1", "1.0"], ROOT

    assert compare("forms", [sources, sources], 1.0, 1, tmp_path) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        pytest.param("'b' * (number == 3) or 'a'", id="it sees something else"),
        pytest.param("'0123456789abcdef broken AssertionError' if number == 3 else 'a'", id="a claim is broken"),
        pytest.param("number == 3 and sys.exit(1) or 'a'", id="it ends"),
    ],
)
def test_what_differs_is_found_and_kept(tmp_path: Path, other: str) -> None:
    found = compare("forms", [side("'a'"), side(other)], 0.5, 1, tmp_path)

    (kept,) = (tmp_path / "forms").iterdir()
    assert found == 1
    assert kept.read_bytes() == list(target("forms").examples)[3]
