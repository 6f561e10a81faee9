"""`tsctl version`."""

import click

from tsctl.cli import show_version
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
def command() -> None:
    """Print the version of tsctl; `tsctl status` shows that of the daemon."""
    show_version()
