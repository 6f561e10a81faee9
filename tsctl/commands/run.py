"""`tsctl run`."""

from pathlib import Path
from typing import Any

import click

from tsctl.launch import run
from tsctl.options import daemon_arguments, setting_options
from tsctl.torchserve import TorchServeCommand, take_torchserve_flags, torchserve_options


@click.command(cls=TorchServeCommand)
@setting_options
@torchserve_options
@click.pass_obj
def command(socket: Path | None, /, **given: Any) -> None:
    """Run the daemon in the foreground, for containers and service managers.

    Logs to stderr, stops on SIGTERM or Ctrl-C, and returns the daemon's exit code. Also accepts
    torchserve's flags.
    """
    take_torchserve_flags(given)
    run(daemon_arguments(socket, given))
