"""`tsctl retry`."""

from pathlib import Path

import click

from tsctl.client import Client, model_path
from tsctl.follow import work
from tsctl.options import model_argument


@click.command
@model_argument
@click.option("--no-wait", is_flag=True, help="Return at once; `tsctl ls` shows what comes of it.")
@click.pass_obj
def command(socket: Path | None, model: str, no_wait: bool) -> None:
    """Try MODEL again, which has failed or is crashing: its workers start with a clean record.

    A version has failed if its handler could not load, or if in each of its places five workers exited
    within 60 s before their first answer and without a request. (A worker that ends while it runs a request
    is replaced, however often.) It stays listed, and is not tried again by itself: put right what was missing,
    then retry.

    A version is crashing if three workers in a row ended of themselves while they ran requests. It is served,
    and the next answer ends that. Requests that have ended two workers alone are refused for a minute; `retry`
    has them run again now.

    What is in the archive takes `tsctl register --replace` instead.
    """
    client = Client(socket)
    named = client.json("GET", f"/models/{model_path(model)}")[0]
    path = f"/models/{model_path(named['modelName'] + '/' + named['modelVersion'])}/retry"
    hint = f"`tsctl describe {model}` shows how far it is"
    document = work(
        client, "POST", path, subject=model, hint=hint, synchronous="false" if no_wait else "true"
    )  # fmt: skip
    click.echo(document["status"])
