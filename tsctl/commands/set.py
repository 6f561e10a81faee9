"""`tsctl set`."""

from pathlib import Path
from typing import Any

import click

from tsctl.client import Client, model_path
from tsctl.options import model_argument

# What the daemon answers: name in model-config.yaml → what people call it, and the unit.
_NAMES: dict[str, tuple[str, str]] = {
    "batchSize": ("batch size", ""),
    "maxBatchDelay": ("maximum delay", " ms"),
    "batching": ("batching", ""),
    "responseTimeout": ("response timeout", " s"),
    "startupTimeout": ("startup timeout", " s"),
    "queueTimeout": ("queue timeout", " s"),
    "jobQueueSize": ("queue size", " requests"),
    "recordInput": ("recording of input", ""),
    "quarantine": ("quarantine", ""),
}
_MORE_THAN_ZERO = click.FloatRange(min=0, min_open=True)


@click.command
@model_argument
@click.option("--batch-size", type=click.IntRange(min=1), metavar="N", help="Requests in one batch, at most.")
@click.option("--max-delay", type=click.FloatRange(min=0), metavar="MS", help="Milliseconds a batch waits to fill.")
@click.option("--batching", type=click.Choice(["auto", "fixed", "greedy"]), help="How batches are formed.")
@click.option("--response-timeout", type=_MORE_THAN_ZERO, metavar="SECONDS", help="For one batch.")
@click.option("--startup-timeout", type=_MORE_THAN_ZERO, metavar="SECONDS", help="For loading, of later workers.")
@click.option("--queue-timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="In the queue; 0 for ever.")
@click.option("--queue-jobs", type=click.IntRange(min=1), metavar="N", help="Requests that may wait.")
@click.option("--record-input/--no-record-input", default=None, help="Keep the latest request in memory, to repeat it.")
@click.option("--quarantine/--no-quarantine", default=None, help="Isolate requests that end workers; on by default.")
@click.pass_obj
def command(
    socket: Path | None,
    model: str,
    batch_size: int | None,
    max_delay: float | None,
    batching: str | None,
    response_timeout: float | None,
    startup_timeout: float | None,
    queue_timeout: float | None,
    queue_jobs: int | None,
    record_input: bool | None,
    quarantine: bool | None,
) -> None:
    """Change how MODEL is served, while it serves.

    Workers go on, nothing that waits or runs is lost, and the new values count from the next batch
    on. They are kept over a restart, and win over the archive's model-config.yaml; `tsctl config
    MODEL` shows them as `set`.

    A handler finds a new batch size in context.system_properties; one that used it only while it
    was initialized needs new workers: `tsctl scale MODEL --workers 0`, then up again.

    Workers are changed with `tsctl scale`. Handler, devices and retry are what a worker is made of:
    they take a new registration, `tsctl register --replace`.
    """
    asked: dict[str, Any] = {
        "batch_size": batch_size,
        "max_batch_delay": max_delay,
        "batching": batching,
        "response_timeout": response_timeout,
        "startup_timeout": startup_timeout,
        "queue_timeout": queue_timeout,
        "job_queue_size": queue_jobs,
        "record_input": None if record_input is None else str(record_input).lower(),
        "quarantine": None if quarantine is None else str(quarantine).lower(),
    }
    if all(value is None for value in asked.values()):
        raise click.UsageError("nothing is to be changed: give at least one option, such as `--batch-size 8`")
    document = Client(socket).json("PATCH", f"/models/{model_path(model)}", **asked)
    for change in document["changes"]:
        click.echo(_sentence(change, f"`{document['modelName']}` {document['modelVersion']}"))


def _sentence(change: dict[str, Any], of: str) -> str:
    name, unit = _NAMES.get(change["name"], (change["name"], ""))
    before, now = _text(change["from"]), _text(change["to"])
    if before == now:
        return f"The {name} of {of} stays {now}{unit}"
    return f"Set the {name} of {of} from {before} to {now}{unit}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
