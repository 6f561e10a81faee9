"""`tsctl load`."""

from pathlib import Path

import click

from tsctl.options import model_argument
from tsctl.progress import act_on_version
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
    act_on_version(socket, model, "load", wait=not no_wait)
