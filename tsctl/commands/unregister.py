"""`tsctl unregister`."""

from pathlib import Path

import click

from tsctl.client import DaemonClient, model_path
from tsctl.errors import Interrupted
from tsctl.options import model_argument
from tsctl.render import live
from tsctl.streams import echo
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@model_argument
@click.pass_obj
def command(socket: Path | None, model: str) -> None:
    """Unregister MODEL; its running requests finish.

    Without a version, unregisters the default version, which is possible only if no other version
    is registered.
    """
    try:
        with live() as progress:
            progress.show(f"waiting for the requests of {model}")
            document = DaemonClient(socket).json("DELETE", f"/models/{model_path(model)}")
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted: the daemon continues unregistering `{model}`") from None
    echo(document["status"])
