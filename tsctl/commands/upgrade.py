"""`tsctl upgrade`."""

import sys
from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient, checked
from tsctl.errors import CliError, Interrupted
from tsctl.options import json_option
from tsctl.render import LiveProgress, live
from tsctl.streams import echo, echo_json
from tsctl.terminal.verb import Verb

SECONDS = click.FloatRange(min=0)


@click.command(cls=Verb)
@click.option(
    "--grace",
    type=SECONDS,
    default=30.0,
    metavar="SECONDS",
    help="How long the old daemon keeps idle connections open [default: 30].",
)
@click.option(
    "--timeout",
    type=SECONDS,
    default=300.0,
    metavar="SECONDS",
    help="How long the new daemon may take until all workers are ready [default: 300].",
)
@click.option(
    "--check-memory/--no-check-memory",
    default=True,
    show_default=True,
    help="Refuse to upgrade if both daemons with all workers do not fit into memory.",
)
@json_option
@click.pass_obj
def command(socket: Path | None, grace: float, timeout: float, check_memory: bool, as_json: bool) -> None:
    """Replace the running daemon by a new process, without a failed request.

    The new daemon runs the code of this `tsctl`, with the settings, environment and log files of the
    old daemon, and first loads every model. Until all its workers are ready, the old daemon serves
    and rejects changes. If any step fails, the old daemon keeps serving. After the handover, the old
    daemon finishes its requests and exits.
    """
    client = DaemonClient(socket)
    parameters = {
        "grace": grace, "timeout": timeout, "check_memory": str(check_memory).lower(), "python": sys.executable,
    }  # fmt: skip
    try:
        with live() as progress:
            document = _watched(client, progress, parameters)
    except KeyboardInterrupt:
        raise Interrupted("interrupted: the upgrade continues", "`tsctl status` shows which daemon serves") from None
    if as_json:
        echo_json(document)
        return
    old, new = document["old"], document["new"]
    echo(
        f"Upgraded the daemon in {document['seconds']:.1f} s:"
        f" tsctl {old['version']}, pid {old['pid']} → tsctl {new['version']}, pid {new['pid']}"
    )
    echo(f"The old daemon finishes its requests; idle connections close after {grace:g} s", err=True)


def _watched(client: DaemonClient, progress: LiveProgress, parameters: dict[str, Any]) -> Any:
    said = ""
    for event in client.events("POST", "/tsctl/upgrade", **parameters):
        done, total = event.get("done", 0), event.get("total", 0)
        match event["stage"]:
            case "checking":
                text = "checking that a second daemon fits into memory"
            case "starting":
                text = "starting the new daemon"
            case "loading":
                text = f"loading, {done} of {total} workers ready"
            case "handing":
                text = "handing over"
            case "done":
                return checked(event["status"], event["document"])
            case _:
                continue  # a stage of a daemon of another version
        progress.show(text, done, total or None)
        if text != said and not sys.stderr.isatty():
            echo(text, err=True)
        said = text
    raise CliError("the daemon exited before the upgrade was done", "see `tsctl logs`")
