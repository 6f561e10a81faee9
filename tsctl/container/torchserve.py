"""The program `torchserve` of the container image, and the server that the word `serve` starts.

Without `--foreground` TorchServe's program returns as soon as the server runs. Here it does so only where another
process keeps the container alive, such as a shell: as process 1, or started by the entry point, the server stays.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from tsctl.container.host import (
    MOUNTED,
    SAGEMAKER_MODEL,
    Host,
    host_of,
    mounted_models,
    sagemaker_models,
    without_absent,
)
from tsctl.container.init import supervise
from tsctl.container.placement import grpc_installed, place
from tsctl.daemon import paths
from tsctl.daemon.core.errors import StartError
from tsctl.errors import CliError
from tsctl.launch import start
from tsctl.options import daemon_arguments, setting_options
from tsctl.starting import DAEMON
from tsctl.streams import echo
from tsctl.torchserve import TorchServeCommand, take_torchserve_flags, torchserve_options

# The places of TorchServe's image, which users mount their files at.
CONFIG = Path("/home/model-server/config.properties")
STORE = Path("/home/model-server/model-store")


@click.command("torchserve", cls=TorchServeCommand, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--version", "version", is_flag=True, help="Show the version and exit.")
@click.option("--start", "starting", is_flag=True, help="Start the server; the same without this flag.")
@click.option("--stop", "stopping", is_flag=True, help="Stop the server.")
@setting_options
@torchserve_options
@click.pass_obj
def torchserve(serve: bool | None, /, version: bool, starting: bool, stopping: bool, **given: Any) -> None:
    """Serve PyTorch models as TorchServe's program does, with tsctl.

    The options are those of `tsctl run`.
    """
    if version + starting + stopping > 1:
        raise click.UsageError("only one of `--version`, `--start` and `--stop` can be given")
    if version:
        from importlib.metadata import version as installed

        echo(f"tsctl {installed('tsctl')}")
    elif stopping:
        _stop(given["socket"])
    else:
        stays = serve is not None or os.getpid() == 1
        stays = take_torchserve_flags(given) or stays
        _start(given, serve=bool(serve), stays=stays)


def _start(given: dict[str, Any], *, serve: bool, stays: bool) -> None:
    for name in os.environ.keys() - without_absent(os.environ).keys():
        del os.environ[name]
    arguments = arguments_of(given, os.environ, serve=serve)
    if stays:
        _stay(arguments)
    state = next(
        (value for flag, _, value in (each.partition("=") for each in arguments) if flag == "--state-dir"),
        os.environ.get("TSCTL_STATE_DIR") or str(paths.default_state_dir()),
    )
    status = start(arguments, Path(state))
    for note in status.get("notes", ()):
        echo(note, err=True)
    echo("Model server started.")  # TorchServe's words, which scripts wait for


def arguments_of(given: dict[str, Any], environment: Mapping[str, str], *, serve: bool) -> list[str]:
    """Return the daemon's arguments; print notes about each difference from config.properties.

    Args:
        given: the flags, by setting; None where not given.
        serve: whether the container's word was `serve`.

    Raises:
        CliError: there is no model, or config.properties cannot be read.
    """
    host = host_of(environment, serve)
    given = dict(given)
    if serve and host is Host.PLAIN:
        _take_places_of_the_image(given, environment)
    elif host is Host.SAGEMAKER and not _named("models", given, environment):
        given["models"] = sagemaker_models(SAGEMAKER_MODEL)
        given["model_store"] = given.get("model_store") or SAGEMAKER_MODEL
    elif host is Host.KSERVE:
        _take_mounted(given, environment)
    try:
        file = _config_file(given, environment)
    except StartError as error:
        raise CliError(str(error), error.hint) from None
    placement = place(given, environment, file, host, grpc=grpc_installed())
    for note in placement.notes:
        echo(note, err=True)
    return daemon_arguments(None, given | placement.values)


def _named(setting: str, given: Mapping[str, Any], environment: Mapping[str, str]) -> bool:
    return given.get(setting) is not None or f"TSCTL_{setting.upper()}" in environment


def _take_places_of_the_image(given: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Use the files that TorchServe's image would use, and like it no token."""
    if not _named("ts_config", given, environment) and "TS_CONFIG_FILE" not in environment and CONFIG.is_file():
        given["ts_config"] = CONFIG
    if given.get("ts_config") is None and not _named("model_store", given, environment) and STORE.is_dir():
        given["model_store"] = STORE
    tokens = _named("token_file", given, environment) or "TSCTL_TOKEN" in environment
    if not tokens and not _named("management_without_token", given, environment):
        given["management_without_token"] = True


def _take_mounted(given: dict[str, Any], environment: Mapping[str, str]) -> None:
    """Find the store where KServe has mounted the models; leave out a config.properties that is not among them."""
    config = given.get("ts_config")
    if config is not None and Path(config).is_relative_to(MOUNTED) and not Path(config).exists():
        echo(f"note: there is no `{config}`: all models of the store are loaded", err=True)
        given["ts_config"] = None
    if given.get("model_store") is None and _named("model_store", given, environment):
        return
    store = given["model_store"] = Path(given.get("model_store") or MOUNTED / "model-store")
    if models := mounted_models(store, MOUNTED):
        echo(f"note: there is no `{store}`: the model store is `{MOUNTED}`", err=True)
        given["model_store"], given["models"] = MOUNTED, given.get("models") or models


def _config_file(given: Mapping[str, Any], environment: Mapping[str, str]) -> Any:
    named = given.get("ts_config") or environment.get("TSCTL_TS_CONFIG") or environment.get("TS_CONFIG_FILE")
    if not named:
        return None
    from tsctl.daemon.config.properties import read_config_file  # here, because most containers have no such file

    return read_config_file(Path(named), environment)


def _stay(arguments: Sequence[str]) -> NoReturn:
    """Run the daemon in place of this process, or below it if it is process 1."""
    command = [*DAEMON, *arguments]
    sys.stdout.flush()
    if os.getpid() == 1:
        sys.exit(supervise(command, os.environ))
    os.execv(command[0], command)


def _stop(socket: Path | None) -> None:
    from tsctl.client import DaemonClient
    from tsctl.commands.stop import MARGIN
    from tsctl.errors import NoDaemon
    from tsctl.launch import stop

    try:
        status = DaemonClient(Path(socket) if socket else None).json("GET", "/tsctl/status")
    except NoDaemon:
        echo("TorchServe is not currently running.")
        return
    stop(status["pid"], status["grace"] + MARGIN, lambda: None)
    echo("TorchServe has stopped.")


if __name__ == "__main__":
    torchserve(prog_name="torchserve")
