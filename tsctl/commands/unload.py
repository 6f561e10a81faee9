"""`tsctl unload`."""

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
    """Unload MODEL: end its workers, and keep it registered.

    Running requests finish; waiting and further requests are answered with 503. Unlike a model that
    was unloaded because it was idle, it stays unloaded, also over a restart of the daemon, until
    `tsctl load` or `tsctl scale` brings it back.
    """
    client = DaemonClient(socket)
    named = client.json("GET", f"/models/{model_path(model)}")[0]
    path = f"/models/{model_path(named['modelName'] + '/' + named['modelVersion'])}/unload"
    echo(client.json("POST", path)["status"])
