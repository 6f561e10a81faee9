"""`tsctl start`."""

from pathlib import Path
from typing import Any

import click

from tsctl.daemon import paths
from tsctl.errors import CliError
from tsctl.launch import run, start
from tsctl.options import daemon_arguments, setting_options
from tsctl.streams import echo
from tsctl.torchserve import TorchServeCommand, take_torchserve_flags, torchserve_options


@click.command(cls=TorchServeCommand)
@setting_options
@torchserve_options
@click.pass_obj
def command(socket: Path | None, /, **given: Any) -> None:
    """Start the daemon in the background.

    Returns when the daemon listens, or prints why the daemon could not start; models may still be
    loading. Registers the models of the last run again. Each setting has an environment variable:
    TSCTL_MODEL_STORE for --model-store. Also accepts torchserve's flags.
    """
    import os

    if take_torchserve_flags(given):
        run(daemon_arguments(socket, given))
    chosen = given.get("state_dir") or os.environ.get("TSCTL_STATE_DIR")
    try:
        state_dir = Path(chosen).expanduser().absolute() if chosen else paths.default_state_dir()
    except paths.PathError as error:
        raise CliError(str(error), "name a directory with `--state-dir`") from None
    status = start(daemon_arguments(socket, given), state_dir)
    for note in status.get("notes", ()):
        echo(note, err=True)
    echo(f"Started the daemon, pid {status['pid']}", err=True)
    echo(f"predictions  {status['inferenceAddress'] or 'on the control socket'}")
    if status.get("managementAddress"):
        echo(f"management   {status['managementAddress']}")
    for address in status.get("grpcAddresses", ()):
        echo(f"gRPC         {address}")
    echo(f"control      {status['socket']}")
