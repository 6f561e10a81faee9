"""The help: broken between words, in groups, with two examples a verb."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import click
import pytest

from tests.tsctl.conftest import Invoke
from tsctl.cli import all_verbs, main
from tsctl.daemon.model_settings import ModelSetting
from tsctl.daemon.setting_values import Setting
from tsctl.daemon.tables import MODEL_SETTINGS, SETTINGS
from tsctl.handlers.names import NO_OPTIMIZATION, OPTIMIZATIONS
from tsctl.terminal.examples import all_examples
from tsctl.terminal.help import HelpFormatter


def commands_of(line: str) -> list[list[str]]:
    """Return the arguments of each `tsctl` in a line for a shell."""
    return [shlex.split(found)[1:] for found in re.findall(r"tsctl [^|&>)]*", line)]


def test_every_verb_has_two_examples() -> None:
    assert {verb: len(all_examples().get(verb, ())) for verb in all_verbs()} == dict.fromkeys(all_verbs(), 2)


@pytest.mark.parametrize("verb", all_verbs())
def test_its_examples_parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("sample.json", "models.yaml"):
        Path(name).touch()
    root = click.Context(main, info_name="tsctl")

    for example in all_examples()[verb]:
        found = commands_of(example.line)
        for name, *arguments in found:
            command = main.get_command(root, name)
            assert command is not None
            command.make_context(name, arguments, parent=root)
        assert verb in {name for name, *_ in found}


def test_the_help_of_register_explains_every_optimization(invoke: Invoke) -> None:
    described = invoke("register", "--help").stdout.partition("Optimizations (--optimize")[2].partition("\n\n")[0]

    assert set(re.findall(r"^ {4}(\w+) ", described, re.MULTILINE)) == {*OPTIMIZATIONS, NO_OPTIMIZATION}


@pytest.mark.parametrize("verb", all_verbs())
def test_help_fits_ends_with_the_examples_and_is_never_broken_within_a_word(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    shown = {}
    for columns in (40, 60, 80, 200, 2000):
        monkeypatch.setenv("COLUMNS", str(columns))
        result = invoke(verb, "--help")
        assert result.exit_code == 0
        shown[columns] = result.stdout

    whole = shown[2000]
    assert whole.startswith(f"Usage: tsctl {verb} ")
    assert "[default: (" not in whole
    ending = [line.strip() for line in whole.partition("Examples:\n")[2].splitlines()]
    assert ending == [text for example in all_examples()[verb] for text in (f"{example.text}:", example.line)]
    assert max(map(len, shown[80].splitlines())) <= 80
    assert {word for text in shown.values() for word in text.split()} == set(whole.split())


@pytest.mark.parametrize("columns", [40, 80])
def test_a_paragraph_is_as_wide_as_the_terminal(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))

    widths = [len(line) for line in invoke("retry", "--help").stdout.splitlines()]

    assert columns - 8 <= max(widths) <= columns - 2


def titles_of(rows: Iterable[Setting | ModelSetting]) -> list[str]:
    return list(dict.fromkeys(row.group for row in rows if row.flag))


def test_every_option_of_a_setting_is_in_a_group() -> None:
    rows: list[Setting | ModelSetting] = [*SETTINGS, *MODEL_SETTINGS]

    assert [row.name for row in rows if row.flag and not row.group] == []


@pytest.mark.parametrize(
    ("verb", "titles"),
    [
        ("start", ["Options", *titles_of(SETTINGS)]),
        ("start all", ["Options", *titles_of(SETTINGS), "torchserve's flags"]),
        ("register", ["Options", *titles_of(MODEL_SETTINGS)]),
        ("ls", ["Options"]),
        ("ls all", ["Options"]),
    ],
)
def test_options_are_listed_in_groups(invoke: Invoke, verb: str, titles: list[str]) -> None:
    name, *every = verb.split()
    shown = invoke(name, "--help", *every).stdout

    assert re.findall(r"(?m)^(\S.*):$", shown) == [*titles, "Examples"]
    assert invoke("help", *verb.split()).stdout == shown


def test_the_short_help_of_start_has_everyday_options_and_names_the_way_to_the_others(invoke: Invoke) -> None:
    short, whole = invoke("start", "--help").stdout, invoke("start", "--help", "all").stdout

    options = [set(re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE)) for text in (short, whole)]
    assert {"--model-store", "--host", "--port", "--log-level"} < options[0] < options[1]
    assert len(options[0]) <= 20 and {setting.flag for setting in SETTINGS} < options[1]
    seldom = len(options[1] - options[0])
    assert f"\n{seldom} more options: `tsctl start --help all`\n" in short and "more options" not in whole


@pytest.mark.parametrize(
    ("words", "told"),
    [(["nosuch"], "No such command `nosuch`."), (["ls", "top"], "one verb at a time"), (["scal"], "mean `scale`?")],
)
def test_help_about_no_verb_is_wrong_usage(invoke: Invoke, words: list[str], told: str) -> None:
    result = invoke("help", *words)

    assert result.exit_code == 2 and told in result.stderr


@pytest.mark.parametrize("verb", all_verbs())
def test_a_default_and_a_range_are_in_one_bracket(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    monkeypatch.setattr("tsctl.terminal.help.WIDEST", 2000)
    shown = invoke(verb, "--help", "all").stdout

    assert re.findall(r".*\]\.? +\[.*[<>]=?.*\]", shown) == []


def test_a_term_that_is_too_long_stands_above_its_text() -> None:
    formatter = HelpFormatter(width=40)

    formatter.write_usage("tsctl ls")
    formatter.write_dl([("--a", "short"), ("--a-very-long-option-name TEXT", "its text")])

    assert formatter.getvalue().splitlines() == [
        "Usage: tsctl ls", "--a                 short", "--a-very-long-option-name TEXT", "                    its text"
    ]  # fmt: skip
