"""`tsctl metrics`."""

from importlib.resources import files
from pathlib import Path

import click

from tsctl.client import DaemonClient
from tsctl.errors import CliError
from tsctl.streams import echo
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@click.option("--rules", is_flag=True, help="Print rules of alerts for Prometheus instead.")
@click.option("--dashboard", is_flag=True, help="Print a board for Grafana instead, to be imported.")
@click.pass_obj
def command(socket: Path | None, rules: bool, dashboard: bool) -> None:
    """Print the daemon's metrics, in Prometheus' text format.

    The rules and the board need no daemon. Change the bounds in the rules to what your clients allow.
    """
    if rules and dashboard:
        raise click.UsageError("--rules and --dashboard exclude each other: print one after the other.")
    if rules or dashboard:
        name = "rules.yml" if rules else "dashboard.json"
        echo((files(__package__) / name).read_text(encoding="utf-8"), nl=False)
        return
    answer = DaemonClient(socket).request("GET", "/metrics")
    if answer.status == 404:
        raise CliError("the daemon has no metrics: they are switched off", "`tsctl config` shows who set `metrics`")
    if answer.status != 200:
        raise CliError(f"the daemon answered /metrics with status {answer.status}")
    echo(answer.body, nl=False)
