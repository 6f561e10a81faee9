"""`tsctl scale`."""

from pathlib import Path

import click

from tsctl.client import DaemonClient, model_path
from tsctl.errors import hint
from tsctl.options import json_option, model_argument
from tsctl.progress import warn, work
from tsctl.streams import echo, echo_json
from tsctl.terminal.verb import Verb


@click.command(cls=Verb)
@model_argument
@click.argument("workers", type=click.IntRange(min=0), metavar="N")
@click.option(
    "--max-workers",
    type=click.IntRange(min=1),
    metavar="MOST",
    help="Worker processes at most, where `targetQueueMs` is set: from N up to MOST, as the traffic needs.",
)
@json_option
@click.pass_obj
def command(socket: Path | None, model: str, workers: int, max_workers: int | None, as_json: bool) -> None:
    """Change the number of workers of MODEL to N. Workers that are removed finish their batch first."""
    most = workers if max_workers is None else max_workers
    if most < workers:
        raise click.UsageError(f"--max-workers is {most}, fewer than N, {workers}")
    client = DaemonClient(socket)
    path = f"/models/{model_path(model)}"
    before = client.json("GET", path)[0]
    progress = f"`tsctl describe {model}` shows its progress"
    document = work(
        client, "PUT", path, subject=model, hint=progress, min_worker=workers, max_worker=most, synchronous="true"
    )
    name, version, had = before["modelName"], before["modelVersion"], before["minWorkers"]
    if as_json:
        numbers = {"from": had, "to": workers} | ({"most": most} if most > workers else {})
        scaled = {"modelName": name, "modelVersion": version, "workers": numbers}
        warning = {name: document[name] for name in ("warning",) if name in document}
        echo_json(scaled | warning)
        return
    was = _number(had, before.get("maxWorkers", had))
    now = _number(workers, most)
    if now == was:
        echo(f"The number of workers of `{name}` {version} stays {now}")
    else:
        echo(f"Scaled `{name}` {version} from {was} to {now} worker{'' if now == '1' else 's'}")
    warn(document)
    if most > workers and before["tsctl"].get("autoscaling") is None:
        hint(f"the number changes by itself once there is a target: `tsctl set {model} --target-queue 50`")


def _number(least: int, most: int) -> str:
    """Return a number of workers, or a range of them."""
    return f"{least}-{most}" if most > least else str(least)
