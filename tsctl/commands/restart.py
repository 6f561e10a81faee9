"""`tsctl restart`."""

from pathlib import Path

import click

from tsctl.options import model_argument
from tsctl.progress import act_on_version
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@model_argument
@click.option("--no-wait", is_flag=True, help="Return at once; `tsctl describe` shows the result.")
@click.pass_obj
def command(socket: Path | None, model: str, no_wait: bool) -> None:
    """Replace the workers of MODEL by new ones; no request fails.

    The new workers load beside the old ones, which serve until all new ones are ready, and then finish
    their requests: meanwhile both need memory. A handler that is served from its file is read
    anew; of an archive, the files that were unpacked (`tsctl register --replace` takes a changed one). If
    they fail to load, the old workers go on serving.

    `tsctl upgrade` restarts the daemon and all models, and `tsctl retry` a model that has failed.
    """
    act_on_version(socket, model, "restart", wait=not no_wait)
