"""The comparison of two interpreters: that equal ones agree, and that it finds one that differs, breaks, or ends."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.fuzz.compiled import Side, compare
from tests.lab.fuzz.targets import target
from tests.places import ROOT

OUTCOMES = (sys.executable, "-m", "tests.lab.fuzz.outcomes")
_ANSWERS = "import sys\nfor number, line in enumerate(sys.stdin):\n    print({}, flush=True)"


def side(says: str) -> Side:
    """Start an interpreter that answers each input with this expression."""
    return Side((sys.executable, "-c", _ANSWERS.format(says)), ROOT)


@pytest.fixture
def sides() -> Iterator[list[Side]]:
    started: list[Side] = []
    yield started
    for each in started:
        each.stop()


@pytest.mark.slow
def test_sources_agree_with_themselves(sides: list[Side], tmp_path: Path) -> None:
    sides += [Side(OUTCOMES, ROOT), Side(OUTCOMES, ROOT)]

    assert compare("forms", sides, 1.0, 1, tmp_path) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        pytest.param("'b' * (number == 3) or 'a'", id="it sees something else"),
        pytest.param("'0123456789abcdef broken AssertionError' if number == 3 else 'a'", id="a claim is broken"),
        pytest.param("number == 3 and sys.exit() or 'a'", id="it ends"),
    ],
)
def test_what_differs_is_found_and_kept(sides: list[Side], tmp_path: Path, other: str) -> None:
    sides += [side("'a'"), side(other)]

    found = compare("forms", sides, 0.5, 1, tmp_path)

    (kept,) = (tmp_path / "forms").iterdir()
    assert found == 1
    assert kept.read_bytes() == list(target("forms").examples)[3]
