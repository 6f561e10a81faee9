"""`tsctl describe`."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from tsctl.client import Client, model_path
from tsctl.options import json_option, model_argument


@click.command
@model_argument
@json_option
@click.pass_obj
def command(socket: Path | None, model: str, as_json: bool) -> None:
    """Show everything about MODEL, MODEL/VERSION or MODEL/all.

    On a terminal a readable view; otherwise, and with --json, TorchServe's describe document: a
    list of versions, each with a key `tsctl` for what TorchServe does not know.
    """
    documents = Client(socket).json("GET", f"/models/{model_path(model)}")
    if as_json or not sys.stdout.isatty():
        click.echo(json.dumps(documents, indent=2))
        return
    for index, document in enumerate(documents):
        if index:
            click.echo()
        show(document)


def show(document: dict[str, Any]) -> None:
    """Print one version for people."""
    from tsctl import render

    ours = document["tsctl"]
    batching, queue = ours["batching"], document["jobQueueStatus"]
    render.facts(
        [
            ("model", f"{document['modelName']} {document['modelVersion']}"),
            ("state", render.state(ours["state"])),
            ("archive", document["modelUrl"]),
            (
                "batching",
                f"{batching['policy']}, at most {document['batchSize']} requests, {document['maxBatchDelay']} ms delay",
            ),
            (
                "queue",
                f"{queue['pendingRequests']} waiting, {batching['running']} running,"
                f" room for {queue['remainingCapacity']}",
            ),
            ("timeouts", _timeouts(document)),
            *_expired(batching["expired"]),
        ]
    )
    if document["workers"]:
        render.heading("Workers")
        rows = [
            (worker["pid"], state.lower(), render.bytes_text(worker["memoryUsage"]), worker["startTime"])
            for worker, state in zip(document["workers"], _worker_states(ours), strict=False)
        ]
        render.table((">PID", "STATE", ">MEMORY", "STARTED"), rows)
    if batching["sizes"]:
        render.heading("Batches by size")
        render.histogram([(size, count) for size, count in batching["sizes"].items()])
        render.heading("Batches by reason")
        render.histogram(list(batching["reasons"].items()))
    if ours["error"]:
        render.heading("Error")
        error = ours["error"]
        render.plain("\n".join(filter(None, (error["message"], error["traceback"], *error["output"]))))


def _timeouts(document: dict[str, Any]) -> str:
    texts = [f"{document['responseTimeout']} s for a batch", f"{document['startupTimeout']} s for loading"]
    named = {setting["name"]: setting["value"] for setting in document["tsctl"]["settings"]}
    if named["queueTimeout"]:
        texts.append(f"{named['queueTimeout']:g} s in the queue")
    if named["clientTimeoutInMills"]:
        texts.append(f"{named['clientTimeoutInMills']:g} ms for an answer")
    return ", ".join(texts)


def _expired(expired: dict[str, int]) -> list[tuple[str, str]]:
    """Tell of requests whose time was over, if there were any."""
    if not any(expired.values()):
        return []
    return [("expired", f"{expired['queue']} in the queue, {expired['worker']} with a worker")]


def _worker_states(ours: dict[str, Any]) -> list[str]:
    return [state for state in ours["workers"] if state not in ("EMPTY", "BACKOFF", "GAVE_UP")]
