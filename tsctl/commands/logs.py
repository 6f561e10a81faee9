"""`tsctl logs`."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from daemon import paths
from tsctl.client import DaemonClient, model_path
from tsctl.errors import CliError
from tsctl.options import optional_model_argument
from tsctl.terminal.verb import Verb

POLL = 0.2  # seconds


@click.command(cls=Verb)
@click.option("-f", "--follow", "following", is_flag=True, help="Keep printing lines as they are logged.")
@click.option("-n", "--lines", default=50, show_default=True, metavar="N", help="Number of last lines to show.")
@click.option("--access", is_flag=True, help="Show the access log instead.")
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    envvar="TSCTL_STATE_DIR",
    help="State directory of the daemon, which holds its logs.",
)
@optional_model_argument
@click.pass_obj
def command(
    socket: Path | None, following: bool, lines: int, access: bool, state_dir: Path | None, model: str | None
) -> None:
    """Show the daemon's log, or the output of the workers of MODEL.

    Reads the log files, so also works while no daemon is running.
    """
    client = DaemonClient(socket)
    if state_dir is None:
        state_dir = _state_dir(client)
    if access:
        path = paths.access_log(state_dir)
    elif model is None:
        path = paths.daemon_log(state_dir)
    else:
        path = _model_log(client, state_dir, model)
    if not path.is_file() and not following:
        raise CliError(f"log file `{path}` does not exist yet")
    with contextlib.suppress(KeyboardInterrupt):
        for line in tail(path, lines, following=following):
            click.echo(line, nl=False)


def _state_dir(client: DaemonClient) -> Path:
    """Return the running daemon's state directory, or the default without a daemon."""
    with contextlib.suppress(CliError):
        return Path(client.json("GET", "/tsctl/status")["stateDir"])
    try:
        return paths.default_state_dir()
    except paths.PathError as error:
        raise CliError(str(error), "name the directory with `--state-dir`") from None


def _model_log(client: DaemonClient, state_dir: Path, model: str) -> Path:
    """Return the log of a model's version (by default the default version); the model may be unregistered."""
    name, _, version = model.partition("/")
    if not version:
        try:
            version = client.json("GET", f"/models/{model_path(model)}")[0]["modelVersion"]
        except CliError as error:
            found = sorted(paths.logs_dir(state_dir).glob(f"{name}@*.log"), key=lambda path: path.stat().st_mtime)
            if not found:
                raise error
            return found[-1]
    return paths.model_log(state_dir, name, version)


def tail(path: Path, count: int, *, following: bool) -> Iterator[str]:
    """Yield a file's last `count` lines; with `following`, then each line added, without end.

    With `following`, wait for a file that does not exist yet; read a rotated file to its end, then
    the new file from its start.
    """
    file = _newer(path, None)
    try:
        if file is not None:
            lines = file.readlines()
            yield from lines[max(0, len(lines) - count) :]
        while following:
            time.sleep(POLL)
            newer = _newer(path, file)
            if file is not None:
                yield from iter(file.readline, "")
            if newer is not None:
                if file is not None:
                    file.close()
                file = newer
                yield from iter(file.readline, "")
    finally:
        if file is not None:
            file.close()


def _newer(path: Path, file: TextIO | None) -> TextIO | None:
    """Open the file now at the path; return None if there is none, or if `file` is that file."""
    with contextlib.suppress(FileNotFoundError):
        now = path.stat()
        truncated = file is not None and now.st_size < file.tell()
        if file is None or truncated or not os.path.samestat(now, os.fstat(file.fileno())):
            return path.open(errors="replace")
    return None
