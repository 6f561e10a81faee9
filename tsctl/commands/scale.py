"""`tsctl scale`."""

import json
from pathlib import Path

import click

from tsctl.client import DaemonClient, model_path
from tsctl.options import json_option, model_argument
from tsctl.progress import warn, work
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@model_argument
@click.option("--workers", type=click.IntRange(min=0), required=True, metavar="N", help="Number of worker processes.")
@json_option
@click.pass_obj
def command(socket: Path | None, model: str, workers: int, as_json: bool) -> None:
    """Change the number of workers of MODEL. Workers that are removed finish their batch first."""
    client = DaemonClient(socket)
    path = f"/models/{model_path(model)}"
    before = client.json("GET", path)[0]
    hint = f"`tsctl describe {model}` shows its progress"
    document = work(
        client, "PUT", path, subject=model, hint=hint, min_worker=workers, max_worker=workers, synchronous="true"
    )
    name, version, had = before["modelName"], before["modelVersion"], before["minWorkers"]
    if as_json:
        scaled = {"modelName": name, "modelVersion": version, "workers": {"from": had, "to": workers}}
        warning = {name: document[name] for name in ("warning",) if name in document}
        click.echo(json.dumps(scaled | warning, indent=2))
        return
    click.echo(f"Scaled `{name}` {version} from {had} to {workers} workers")
    warn(document)
