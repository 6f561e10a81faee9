"""`tsctl retry`."""

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
@click.option("--no-wait", is_flag=True, help="Return at once; `tsctl ls` shows the result.")
@click.pass_obj
def command(socket: Path | None, model: str, no_wait: bool) -> None:
    """Retry a MODEL that has failed or is crashing: start its workers with a clean record.

    A version is "failed" if its handler could not load, or if in each worker slot five workers exited
    within 60 s before their first answer and without a request. (A worker that exits while running a
    request is always replaced.) A failed version stays listed and is not restarted automatically: fix
    the cause, then retry.

    A version is "crashing" if three workers in a row exited unexpectedly while running requests. A
    crashing version still serves, and recovers with its next answer. Requests that crashed two workers
    on their own are refused for a minute; `retry` allows them again at once.

    If the cause is in the archive, use `tsctl register --replace` instead.
    """
    client = DaemonClient(socket)
    named = client.json("GET", f"/models/{model_path(model)}")[0]
    path = f"/models/{model_path(named['modelName'] + '/' + named['modelVersion'])}/retry"
    hint = f"`tsctl describe {model}` shows its progress"
    document = work(
        client, "POST", path, subject=model, hint=hint, synchronous="false" if no_wait else "true"
    )  # fmt: skip
    name, version = named["modelName"], named["modelVersion"]
    echo(starting_line(name, version) if no_wait else document["status"])
