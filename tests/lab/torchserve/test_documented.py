"""Commands are read from pages as a shell would read them, and judged by what `tsctl start` makes of them."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lab.torchserve.configurations import named_config
from tests.lab.torchserve.documented import commands
from tests.lab.torchserve.start_lines import judge_line
from tests.lab.torchserve.verdict import Outcome


def words(tmp_path: Path, text: str) -> list[tuple[str, ...]]:
    page = tmp_path / "page.md"
    page.write_text(text)
    return [each.words for each in commands(page, "torchserve")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\n$ torchserve --start --ncs\nnext\n```", ("--start", "--ncs")),
        ("run `torchserve --start` and wait", ("--start",)),
        ("torchserve --start \\\n   --models a=b.mar &", ("--start", "--models", "a=b.mar")),
        ("torchserve --start --model-store <your store> > log", ("--start", "--model-store", "PLACEHOLDER")),
        ("torchserve --start --models {name=model.mar}", ("--start", "--models", "PLACEHOLDER")),
        ("torchserve --start; torchserve-other --start", ("--start",)),
        ("torchserve.exe --start # in the background", ("--start",)),
    ],
)
def test_a_command_ends_where_its_line_or_span_ends(tmp_path: Path, text: str, expected: tuple[str, ...]) -> None:
    assert words(tmp_path, text)[0] == expected


def test_prose_about_a_program_is_no_command(tmp_path: Path) -> None:
    assert words(tmp_path, "torchserve starts; pip install torchserve\ntorchserve --start --models 'a\n") == []


def test_a_command_knows_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("\n\ntorchserve --start\n")

    assert [each.line for each in commands(page, "torchserve")] == [3]


@pytest.mark.parametrize(
    ("given", "accepted", "outcome"),
    [
        (["--start", "--ncs", "--models", "a=b.mar", "c.mar", "--disable-token"], True, Outcome.WORKS),
        (["--start", "models", "a"], False, Outcome.NEITHER),
        (["--start", "--models", "a=", "b.mar"], True, Outcome.REFUSED),
        (["--start", "--no-such-flag"], True, Outcome.DEFECT),
    ],
)
def test_a_start_line_is_judged_by_both_parsers(given: Sequence[str], accepted: bool, outcome: Outcome) -> None:
    assert judge_line("page:1", given, lambda _: accepted).outcome is outcome


@pytest.mark.parametrize(
    ("given", "named"),
    [(["--ts-config", "a"], "a"), (["--ts-config=b", "--start"], "b"), (["--start"], ""), (["--ts-config"], "")],
)
def test_the_file_that_a_line_names_is_found(given: Sequence[str], named: str) -> None:
    assert named_config(given) == named
