"""`tsctl top`."""

from pathlib import Path

import click

from tsctl.client import DaemonClient
from tsctl.terminal.verb import Verb

TIMEOUT = 5.0  # seconds, after which the screen shows that the daemon does not answer


@click.command(cls=Verb)
@click.option("--once", is_flag=True, help="Print one table and end, as into a pipe.")
@click.option(
    "--interval",
    type=click.FloatRange(0.1, 60.0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two looks.",
)
@click.pass_obj
def command(socket: Path | None, once: bool, interval: float) -> None:
    """Watch the models: requests, errors, latency, batches, queues, workers.

    The rates are those of the last five seconds. Enter shows the batches of one model as they form,
    and its last events; Esc goes back, `q` ends. A pipe gets one table, of one interval.
    """
    from tsctl.extensions.live.session import print_once, watch
    from tsctl.extensions.live.terminal import is_screen

    client = DaemonClient(socket, timeout=TIMEOUT)
    if once or not is_screen():
        print_once(client, interval)
    else:
        watch(client, interval)
