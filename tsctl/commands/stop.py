"""`tsctl stop`."""

from pathlib import Path

import click

from tsctl.client import DaemonClient
from tsctl.launch import stop
from tsctl.render import live
from tsctl.streams import echo
from tsctl.terminal.verb import Verb

MARGIN = 15.0  # seconds beyond the daemon's own grace time, for workers that must be killed


@click.command(cls=Verb)
@click.pass_obj
def command(socket: Path | None) -> None:
    """Stop the daemon.

    The daemon rejects new requests, finishes waiting and running ones (for at most its --grace), and
    stops its workers. Returns when the daemon has exited.
    """
    status = DaemonClient(socket).json("GET", "/tsctl/status")
    with live() as progress:
        progress.show("waiting for running requests to finish")
        stop(status["pid"], status["grace"] + MARGIN, progress.tick)
    echo(f"Stopped the daemon, pid {status['pid']}", err=True)
