"""`tsctl default`."""

from pathlib import Path

import click

from tsctl.client import DaemonClient, model_path
from tsctl.options import model_argument
from tsctl.streams import echo
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@model_argument
@click.pass_obj
def command(socket: Path | None, model: str) -> None:
    """Set MODEL/VERSION as the default: the version that answers requests without a version.

    If the model has a route, it is removed: the default version then answers all such requests.
    """
    if "/" not in model:
        raise click.BadParameter(f"`{model}` has no version: write MODEL/VERSION", param_hint="MODEL")
    document = DaemonClient(socket).json("PUT", f"/models/{model_path(model)}/set-default")
    echo(document["status"])
