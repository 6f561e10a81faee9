"""`python -m tests.lab NAME` runs what its table says; that it has the arguments is seen by CI, which passes some."""

import importlib.util
import re

import pytest

from tests.lab.__main__ import main
from tests.lab.programs import PROGRAMS


def test_the_modules_of_the_table_exist() -> None:
    named = re.findall(r"python -m (tests[\w.]*)", " ".join(each for one in PROGRAMS.values() for each in one.commands))

    assert len(named) > 15
    assert [name for name in named if importlib.util.find_spec(name) is None] == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "`nothing` is none of the programs; `python -m tests.lab` lists them\n"),
        (["references", "--quick", "a b"], "`references` takes no arguments: --quick 'a b'\n"),
    ],
)
def test_what_cannot_be_run_is_refused(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == sentence
