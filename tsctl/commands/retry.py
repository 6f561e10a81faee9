"""`tsctl retry`."""

from pathlib import Path

import click

from tsctl.options import model_argument
from tsctl.progress import act_on_version
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
    act_on_version(socket, model, "retry", wait=not no_wait)
