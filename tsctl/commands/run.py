"""`tsctl run`."""

import os
from pathlib import Path
from typing import Any

import click

from tsctl.launch import DAEMON
from tsctl.options import daemon_arguments, setting_options


@click.command
@setting_options
@click.pass_obj
def command(socket: Path | None, /, **given: Any) -> None:
    """Run the daemon in the foreground, for containers and service managers.

    It logs to stderr, stops on SIGTERM or Ctrl-C, and its exit code is that of this command.
    """
    os.execv(DAEMON[0], [*DAEMON, *daemon_arguments(socket, given)])
