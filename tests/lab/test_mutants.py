"""Mutants of the core: that the table of those which nobody can tell from the modules names some that exist."""

from pathlib import Path

import pytest

from tests.lab.mutants.changes import mutants
from tests.lab.mutants.modules import EQUIVALENT
from tests.places import ROOT, place_of


@pytest.mark.parametrize("module", EQUIVALENT)
def test_an_equivalent_mutant_exists(module: str) -> None:
    source = Path(ROOT, *place_of(module).split(".")).with_suffix(".py").read_text(encoding="utf-8")

    assert EQUIVALENT[module].keys() - {mutant.text for mutant in mutants(source)} == set()
