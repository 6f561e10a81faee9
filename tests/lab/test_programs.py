"""`python -m tests.lab NAME` runs what its table says, with the arguments that follow the name."""

import importlib.util
import re
import subprocess
from typing import Any

import pytest

from tests.lab.__main__ import main
from tests.lab.programs import PROGRAMS


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the commands that were run, each of which succeeds."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_the_modules_of_the_table_exist() -> None:
    named = re.findall(r"python -m (tests[\w.]*)", " ".join(each for one in PROGRAMS.values() for each in one.commands))

    assert len(named) > 15
    assert [name for name in named if importlib.util.find_spec(name) is None] == []


def test_what_a_program_needs_is_made_and_its_module_has_the_arguments(ran: list[list[str]]) -> None:
    assert main(["upgrades", "--count", "3"]) == 0

    assert ran == [
        ["make", "--no-print-directory", ".venv/.installed"],
        ["bash", "-c", 'python -m tests.lab.chaos.upgrades "$@"', "bash", "--count", "3"],
    ]


def test_what_only_some_of_the_modules_know_is_not_told_to_the_others(ran: list[list[str]]) -> None:
    assert main(["bounds", "--sizes", "5"]) == 0

    assert [command[2] for command in ran[1:]] == [
        'python -m tests.lab.benchmarks.callbacks "$@"',
        "python -m tests.lab.benchmarks.bounds",
    ]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing"], "`nothing` is none of the programs; `python -m tests.lab` lists them\n"),
        (["references", "--quick", "a b"], "`references` takes no arguments: --quick 'a b'\n"),
    ],
)
def test_what_cannot_be_run_is_refused(
    arguments: list[str], sentence: str, ran: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == sentence
    assert ran == []
