"""`tsctl promote`."""

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
    """End the rollout of MODEL: its new version answers all requests, whatever has been shown of it."""
    if "/" in model:
        raise click.BadParameter(f"`{model}` names a version: a rollout is the model's", param_hint="MODEL")
    echo(DaemonClient(socket).json("POST", f"/models/{model_path(model)}/rollout/promote")["status"])
