"""`tsctl restart`."""

from pathlib import Path

import click

from tsctl.client import DaemonClient, model_path
from tsctl.options import model_argument
from tsctl.progress import work
from tsctl.streams import echo
from tsctl.terminal.registered import starting_line
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
    client = DaemonClient(socket)
    named = client.json("GET", f"/models/{model_path(model)}")[0]
    name, version = named["modelName"], named["modelVersion"]
    path = f"/models/{model_path(f'{name}/{version}')}/restart"
    hint = f"`tsctl describe {model}` shows its progress"
    document = work(client, "POST", path, subject=model, hint=hint, synchronous="false" if no_wait else "true")
    echo(starting_line(name, version) if no_wait else document["status"])
