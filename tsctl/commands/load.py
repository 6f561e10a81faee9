"""`tsctl load`."""

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
@click.option("--no-wait", is_flag=True, help="Return at once; `tsctl ls` shows when the workers are ready.")
@click.pass_obj
def command(socket: Path | None, model: str, no_wait: bool) -> None:
    """Load MODEL now, and let requests load it again.

    Starts the workers of a model that is not in memory: unloaded when idle or to make room (`loading:
    on_demand`), unloaded by `tsctl unload`, or scaled to 0. Waits until every worker is ready.
    """
    client = DaemonClient(socket)
    named = client.json("GET", f"/models/{model_path(model)}")[0]
    name, version = named["modelName"], named["modelVersion"]
    path = f"/models/{model_path(f'{name}/{version}')}/load"
    hint = f"`tsctl describe {model}` shows its progress"
    document = work(
        client, "POST", path, subject=model, hint=hint, synchronous="false" if no_wait else "true"
    )  # fmt: skip
    echo(starting_line(name, version) if no_wait else document["status"])
