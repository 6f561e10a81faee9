"""torchserve's flags: those with a meaning here have it, the others say that they have none."""

import shlex
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

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


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--models", "a.mar", "n=b.mar"], ["--models=a.mar,n=b.mar"], id="takes every word"),
        pytest.param(
            ["--models", "a.mar", "--grace", "3"], ["--models=a.mar", "--grace=3"], id="up to the next option"
        ),
        pytest.param(["--models", "a.mar", "--models=b.mar"], ["--models=a.mar,b.mar"], id="and may be given again"),
        pytest.param(["--models", "a.mar,b.mar"], ["--models=a.mar,b.mar"], id="or with commas, as in the file"),
        pytest.param(["--models", "ALL"], ["--models=ALL"], id="ALL is one"),
    ],
)
def test_models(arguments: list[str], expected: list[str]) -> None:
    assert run(*arguments).return_value == (False, expected)


def test_every_start_line_that_torchserves_repository_documents_is_understood() -> None:
    settings = {setting.flag for setting in SETTINGS}
    for line in Path(__file__).with_name("torchserve_start_lines.txt").read_text().splitlines():
        if "--log-config" in line and "--log-config" not in settings:  # its extension is left out
            continue
        start.make_context("start", [word for word in shlex.split(line) if word != "--start"])  # of commit 62c4d6a1f


def test_a_word_that_no_option_takes_is_wrong_usage() -> None:
    error = run("--grace", "3", "b.mar").exception

    assert isinstance(error, click.UsageError)
    assert "b.mar" in str(error)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--disable-token"], ["--management-without-token=true"]),
        (["--no-config"], ["--restore=false"]),
        (["--model", "a.mar", "b.mar"], ["--models=a.mar,b.mar"]),
        (["--model-s", "/x"], ["--model-store=/x"]),
        (["--ts", "/c.properties"], ["--ts-config=/c.properties"]),
        (["--model=a.mar", "--grace", "3"], ["--models=a.mar", "--grace=3"]),
    ],
)
def test_the_beginning_of_a_flag_is_enough(arguments: list[str], expected: list[str]) -> None:
    assert sorted(run(*arguments).return_value[1]) == sorted(expected)


@pytest.mark.parametrize("word", ["--mod", "--logs", "--"])
def test_the_beginning_of_several_flags_or_of_none_is_wrong_usage(word: str) -> None:
    assert isinstance(run(word, "x").exception, click.UsageError)


def test_models_without_a_word_is_wrong_usage() -> None:
    assert spread_models(["--models", "--grace", "3"]) == ["--models", "--grace", "3"]
    assert isinstance(run("--models").exception, click.UsageError)


@pytest.mark.parametrize(
    ("model", "sentence"), [("=a.mar", "`=a.mar` is neither ARCHIVE nor NAME=ARCHIVE"), ("n=", "`n=` is neither")]
)
def test_a_model_that_is_none_is_wrong_usage(model: str, sentence: str) -> None:
    error = run("--models", model).exception

    assert isinstance(error, click.UsageError)
    assert sentence in str(error)


@pytest.mark.parametrize("flag", ["--ncs", "--no-config-snapshots"])
def test_no_config_snapshots_is_no_restore_and_says_so(flag: str) -> None:
    result = run(flag)

    assert result.return_value == (False, ["--restore=false"])
    assert "note: `--ncs` is taken as `--no-restore`" in result.stderr


def test_no_config_snapshots_and_restore_contradict_each_other() -> None:
    assert isinstance(run("--ncs", "--restore").exception, click.UsageError)


@pytest.mark.parametrize("flag", ["--disable-token-auth", "--dt"])
def test_disabling_tokens_lets_commands_come_without_one_and_says_so(flag: str) -> None:
    result = run(flag)

    assert result.return_value == (False, ["--management-without-token=true"])
    assert "note: `--disable-token-auth` is taken as `--management-without-token`" in result.stderr


def test_disabling_tokens_and_asking_for_them_contradict_each_other() -> None:
    error = run("--dt", "--no-management-without-token").exception

    assert isinstance(error, click.UsageError)
    assert "`--disable-token-auth` and `--no-management-without-token` contradict each other" in str(error)


def test_foreground_is_told() -> None:
    result = run("--foreground")

    assert result.return_value == (True, [])
    assert result.stderr == ""


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


def test_a_config_file_is_made_absolute_for_a_daemon_that_is_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run("--ts-config", "config.properties").return_value == (
        False,
        [f"--ts-config={tmp_path}/config.properties"],
    )
