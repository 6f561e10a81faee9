"""The daemon's settings are options, and what they make the daemon understands."""

import os
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tsctl.daemon.__main__ import parse_arguments
from tsctl.daemon.config.config import resolve
from tsctl.daemon.setting_values import Setting, parse_boolean
from tsctl.daemon.tables import SETTINGS
from tsctl.options import daemon_arguments, setting_options

SAMPLES = {
    "PATH": "/run/x.sock",
    "DIR": "/",
    "ADDRESS": "0.0.0.0:9090",
    "ADDRESSES": "127.0.0.1:7070,[::1]:7070",
    "SECONDS": "2.5",
    "BYTES": "80MiB",
    "JOBS": "7",
    "FILES": "7",
    "LEVEL": "debug",
    "N": "2",
    "CHOICE": "asked",
    "FORMAT": "json",
    "FILE": "/dev/null",
    "NETWORKS": "10.0.0.0/8",
    "NAMES": "models.example.com,gpu1",
    "PATTERNS": "https://models\\.example\\.com/.*",
    "MODELS": "ALL,other=m.mar",
    "WORKERS": "3",
    "HANDLER": "image_classifier",
    "ENVELOPE": "kserve",
    "REGEX": "AWS_.*",
    "ORIGIN": "https://app.example",
    "LIST": "content-type",
    "URL": "http://127.0.0.1:4318",
    "RATIO": "0.5",
    "MODE": "legacy",
    "NAME": "x-sequence",
    "SIZE": "host=16GiB,gpu=20GiB",
    "TIME": "5m",
}
every_setting = pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)


@click.command
@setting_options
def echo(**given: Any) -> dict[str, Any]:
    return given


def given_by(*arguments: str) -> dict[str, Any]:
    """Parse a command line that has nothing but the settings' options."""
    result = CliRunner().invoke(echo, arguments, standalone_mode=False)
    assert result.exception is None, result.output
    given: dict[str, Any] = result.return_value
    return given


def arguments_for(setting: Setting) -> list[str]:
    return [setting.flag] if setting.parse is parse_boolean else [setting.flag, SAMPLES[setting.metavar]]


@pytest.mark.parametrize(
    ("root", "options", "expected"),
    [
        pytest.param(None, "", "", id="nothing given makes no arguments"),
        (None, "--port 8081", "--inference-address=127.0.0.1:8081"),
        (None, "--host 0.0.0.0", "--inference-address=0.0.0.0:8080"),
        (None, "--host ::1 --port 8081", "--inference-address=[::1]:8081"),
        pytest.param(None, "--inference-address=-odd", "--inference-address=-odd", id="a value with a dash"),
        pytest.param(None, "--model-store store", "--model-store={}/store", id="a path is absolute for the daemon"),
        pytest.param(Path("/root.sock"), "", "--socket=/root.sock", id="the root command's socket is passed on"),
        pytest.param(Path("/root.sock"), "--socket /own.sock", "--socket=/own.sock", id="gives way to the verb's own"),
    ],
)
def test_arguments(
    root: Path | None, options: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert daemon_arguments(root, given_by(*options.split())) == expected.format(tmp_path).split()
    assert parse_arguments(["--inference-address=-odd"]).inference_address == "-odd"


def test_an_address_in_two_ways_is_wrong_usage() -> None:
    for order in (["--port", "1", "--inference-address", "8081"], ["--inference-address", "8081", "--host", "::1"]):
        result = CliRunner().invoke(echo, order)

        assert result.exit_code == 2 and "give either" in result.output


@every_setting
def test_what_an_option_makes_the_daemon_reads_as_the_same_value(setting: Setting) -> None:
    arguments = daemon_arguments(None, given_by(*arguments_for(setting)))

    config = resolve(vars(parse_arguments(arguments)), {})
    expected = True if setting.parse is parse_boolean else setting.parse(SAMPLES[setting.metavar])
    assert len(arguments) == 1
    assert getattr(config, setting.name) == expected
    assert config.origins[setting.name] == "flag"


@pytest.mark.parametrize(("flag", "expected"), [("--access-log", True), ("--no-access-log", False)])
def test_a_boolean_has_two_flags(flag: str, expected: bool) -> None:
    arguments = daemon_arguments(None, given_by(flag))

    assert resolve(vars(parse_arguments(arguments)), {}).access_log is expected


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--grace", "soon"], "`soon` is not a number of seconds"),
        (["--grace", "-1"], "`-1` is not a number of seconds"),
        (["--queue-jobs", "0"], "`0` is not a whole number of at least 1"),
        (["--max-request-size", "big"], "`big` is not a size (write 1048576, 64MiB or 1GB)"),
        (["--log-level", "loud"], "`loud` is not a log level (debug, info, warning, error)"),
        (["--socket", ""], "the path is empty"),
    ],
)
def test_a_value_that_cannot_be_read_is_wrong_usage(arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(echo, arguments)

    assert result.exit_code == 2
    assert sentence in " ".join(result.stderr.replace("│", "").split())


@every_setting
def test_the_default_that_help_shows_is_the_default(setting: Setting) -> None:
    (option,) = (each for each in echo.params if each.name == setting.name)
    assert isinstance(option, click.Option)
    assert option.help is not None

    shown = option.help.rpartition("[default: ")[2].removesuffix("]").removesuffix("].")

    if setting.default is None:
        assert option.help == setting.help
    elif setting.parse is parse_boolean:
        assert shown == ("on" if setting.default else "off")
    else:
        assert setting.parse(shown) == setting.default


def test_a_setting_from_the_environment_is_left_to_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TSCTL_GRACE", "3")

    config = resolve(vars(parse_arguments(daemon_arguments(None, given_by()))), os.environ)

    assert config.grace == 3.0
    assert config.origins["grace"] == "environment"
