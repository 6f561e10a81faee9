"""torchserve's flags: those with a meaning here have it, the others say that they have none."""

import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from tests.kit.said import said_in
from tsctl.commands.start import command as start
from tsctl.daemon.tables import SETTINGS
from tsctl.options import daemon_arguments, setting_options
from tsctl.torchserve import FLAGS, TorchServeCommand, spread_models, take_torchserve_flags, torchserve_options


@click.command(cls=TorchServeCommand)
@setting_options
@torchserve_options
def echo(**given: Any) -> tuple[bool, list[str]]:
    foreground = take_torchserve_flags(given)
    return foreground, daemon_arguments(None, given)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(echo, arguments, standalone_mode=False)


NO_RESTORE = "`--ncs` is taken as `--no-restore`"
NO_TOKEN = "`--disable-token-auth` is taken as `--management-without-token`"


@said_in("torchserve_flags.txt")
def test_flags(given: str) -> str:
    foreground, arguments = run(*given.split()).return_value
    assert not foreground
    return " ".join(arguments)


def test_foreground_is_told() -> None:
    result = run("--foreground")

    assert (result.return_value, result.stderr) == ((True, []), "")


def test_every_start_line_that_torchserves_repository_documents_is_understood() -> None:
    settings = {setting.flag for setting in SETTINGS}
    for line in Path(__file__).with_name("torchserve_start_lines.txt").read_text().splitlines():
        if "--log-config" in line and "--log-config" not in settings:  # its extension is left out
            continue
        start.make_context("start", [word for word in shlex.split(line) if word != "--start"])  # of commit 62c4d6a1f


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        pytest.param("--grace 3 b.mar", "b.mar", id="a word that no option takes"),
        pytest.param("--mod x", "", id="the beginning of several flags"),
        pytest.param("--logs x", "", id="of none"),
        pytest.param("-- x", "", id="no flag"),
        pytest.param("--models", "", id="models without a word"),
        ("--models =a.mar", "`=a.mar` is neither ARCHIVE nor NAME=ARCHIVE"),
        ("--models n=", "`n=` is neither"),
        ("--ncs --restore", ""),
        (
            "--dt --no-management-without-token",
            "`--disable-token-auth` and `--no-management-without-token` contradict each other",
        ),
    ],
)
def test_wrong_usage(line: str, sentence: str) -> None:
    error = run(*line.split()).exception

    assert isinstance(error, click.UsageError) and sentence in str(error)


def test_models_without_a_word_are_left_to_click() -> None:
    assert spread_models(["--models", "--grace", "3"]) == ["--models", "--grace", "3"]


@pytest.mark.parametrize(
    ("flag", "argument", "note"),
    [
        *((flag, "--restore=false", NO_RESTORE) for flag in ("--ncs", "--no-config-snapshots")),
        *((flag, "--management-without-token=true", NO_TOKEN) for flag in ("--disable-token-auth", "--dt")),
    ],
)
def test_a_flag_that_is_another_here_says_so(flag: str, argument: str, note: str) -> None:
    result = run(flag)

    assert result.return_value == (False, [argument])
    assert f"note: {note}" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cpp-log-config", "log.yaml"],
        ["--plugins-path", "plugins"],
        ["--ppath", "plugins"],
        ["--workflow-store", "workflows"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_flag_without_a_meaning_here_is_a_note(arguments: list[str]) -> None:
    result = run(*arguments)

    (flag,) = (flag for flag in FLAGS if arguments[0] in flag.names)
    assert result.return_value == (False, [])
    assert result.stdout == ""
    assert result.stderr.startswith(f"note: `{flag.names[0]}` has no effect: ")
