"""`tsctl logs`."""

import contextlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from tsctl.client import DaemonClient, model_path
from tsctl.daemon import paths
from tsctl.errors import CliError
from tsctl.logs.merging import Followed, documents, follow, merged
from tsctl.logs.sources import Line, LogSource, model_source, model_sources
from tsctl.options import optional_model_argument, own_state_dir
from tsctl.streams import echo
from tsctl.terminal.since_option import Since
from tsctl.terminal.verb import Verb

LINES = 50


@click.command(cls=Verb)
@click.option("-f", "--follow", "following", is_flag=True, help="Keep printing lines as they are logged.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    metavar="N",
    help=f"Number of last lines to show [default: {LINES}; with `--since`, all].",
)
@click.option("--since", type=Since(), metavar="TIME", help="Show lines from then on: 10m, 2h, 2026-01-31T12:00.")
@click.option("--daemon", is_flag=True, help="Show the daemon's own log.")
@click.option("--access", is_flag=True, help="Show the access log.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one entry a line.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    envvar="TSCTL_STATE_DIR",
    help="State directory of the daemon, which holds its logs.",
)
@optional_model_argument
@click.pass_obj
def command(
    socket: Path | None, following: bool, lines: int | None, since: float | None, daemon: bool, access: bool,
    as_json: bool, state_dir: Path | None, model: str | None,
) -> None:  # fmt: skip
    """Show what was logged: by the daemon, its requests and the workers of all models; or only of MODEL.

    Lines are merged by time. `--daemon`, `--access` and MODEL choose logs, and may be combined. Reads the log files, so
    also works while no daemon is running.
    """
    client = DaemonClient(socket)
    if state_dir is None:
        state_dir = _state_dir(client)
    find = _chosen(client, state_dir, daemon, access, model)
    found = find()
    count = LINES if lines is None and since is None else lines
    named = len(found) > 1 or not (daemon or access or model)
    if not following:
        if not any(source.path.is_file() for source in found):
            first = "a log begins with its first line: a model's with what its handler prints"
            raise CliError(f"log file `{found[0].path}` does not exist yet", first)
        _print(merged(found, count, since), as_json, named)
        return
    with contextlib.suppress(KeyboardInterrupt):
        for together in follow(Followed(find), count, since):
            _print(together, as_json, named)


def _chosen(
    client: DaemonClient, state_dir: Path, daemon: bool, access: bool, model: str | None
) -> Callable[[], list[LogSource]]:
    """Return the function that lists the logs that were asked for, which may become more."""
    everything = not (daemon or access or model)
    fixed = []
    if daemon or everything:
        fixed.append(LogSource(paths.daemon_log(state_dir), "daemon"))
    if access or everything:
        fixed.append(LogSource(paths.access_log(state_dir), "access"))
    if model is not None:
        fixed.append(_model_source(client, state_dir, model))
    return lambda: [*fixed, *(model_sources(state_dir) if everything else ())]


def _print(lines: Iterable[Line], as_json: bool, named: bool) -> None:
    if as_json:
        for document in documents(lines):
            echo(json.dumps(document))
    else:
        for line in lines:
            echo(line.shown(named=named))


def _state_dir(client: DaemonClient) -> Path:
    """Return the running daemon's state directory, or the default without a daemon."""
    with contextlib.suppress(CliError):
        return Path(client.json("GET", "/tsctl/status")["stateDir"])
    return own_state_dir()


def _model_source(client: DaemonClient, state_dir: Path, model: str) -> LogSource:
    """Return the log of a model's version (by default the default version); the model may be unregistered."""
    name, _, version = model.partition("/")
    if not version:
        try:
            version = client.json("GET", f"/models/{model_path(model)}")[0]["modelVersion"]
        except CliError as error:
            logs = [source for source in model_sources(state_dir) if source.model == name]
            if not logs:
                raise error
            return max(logs, key=lambda source: source.path.stat().st_mtime)
    return model_source(state_dir, name, version)
