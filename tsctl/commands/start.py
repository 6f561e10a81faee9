"""`tsctl start`."""

import time
from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient
from tsctl.daemon.setting_values import parse_path
from tsctl.errors import CliError
from tsctl.launch import await_models, further_addresses, lost_models, run, start
from tsctl.options import daemon_arguments, own_state_dir, setting_options
from tsctl.streams import echo
from tsctl.torchserve import TorchServeCommand, take_torchserve_flags, torchserve_options


@click.command(cls=TorchServeCommand)
@setting_options
@torchserve_options
@click.pass_obj
def command(socket: Path | None, /, **given: Any) -> None:
    """Start the daemon in the background.

    Returns when the models are registered, which may still be loading, or prints why the daemon could not
    start. Registers the models of the last run again. Each option has an environment variable:
    TSCTL_MODEL_STORE for --model-store, and TSCTL_INFERENCE_ADDRESS for --host and --port together. Also
    accepts torchserve's flags.
    """
    import os

    if take_torchserve_flags(given):
        run(daemon_arguments(socket, given))
    chosen = given.get("state_dir") or os.environ.get("TSCTL_STATE_DIR")
    try:
        state_dir = parse_path(str(chosen)) if chosen else own_state_dir()
    except ValueError as error:
        raise CliError(f"TSCTL_STATE_DIR: {error}") from None
    status = start(daemon_arguments(socket, given), state_dir)
    client = DaemonClient(Path(status["socket"]))
    waiting = await_models(client, time.sleep)
    for note in status.get("notes", ()):
        echo(note, err=True)
    echo(f"Started the daemon, pid {status['pid']}", err=True)
    predictions = status["inferenceAddress"] or "on the control socket"
    rows = [("predictions", predictions), *further_addresses(status), ("control", status["socket"])]
    width = max(len(name) for name, _ in rows)
    for name, address in rows:
        echo(f"{name:{width}}  {address}")
    for sentence in lost_models(client, status["started"]):
        echo(f"warning: {sentence}", err=True)
    if waiting:
        names = ", ".join(f"`{name}`" for name in waiting if name) or "one"
        echo(f"note: still being unpacked or downloaded: {names}; requests for them wait", err=True)
