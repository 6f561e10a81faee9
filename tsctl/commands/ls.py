"""`tsctl ls`."""

from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient
from tsctl.errors import hint
from tsctl.extension import extensions
from tsctl.gpu_text import card_rows, gpus_of, held_text
from tsctl.options import json_option
from tsctl.streams import echo, echo_json
from tsctl.terminal.verb import Verb
from tsctl.trouble import STYLE, beside_state, troubles_of, worst_first

# Columns that a narrow terminal does without, the first of them first: settings, then load, then health.
DROPPED = ("BATCHING", "DELAY", "BATCH", "QUEUE", "REQ/S", "GPU", "WORKERS", "VERSION", "P99", "ERRORS")


@click.command(cls=Verb)
@json_option
@click.pass_obj
def command(socket: Path | None, as_json: bool) -> None:
    """List the registered models, those in trouble first; `*` marks a default version among several.

    In trouble is a version that has failed, or whose workers crash; with more than 1 % of errors in the
    last minute, a queue over half full, or a worker that ended within the minute.

    REQ/S is the recent arrival rate. ERRORS and P99, the latency within which 99 % were answered, are
    those of the last minute. TRAFFIC is a version's share of the requests if its model has a route.
    GPU has the numbers of the GPUs that its workers are on, and what they hold there together; the GPUs'
    names and memory follow the table.
    Names are never cut: a narrow terminal shows fewer columns, and --json shows all.
    """
    status = DaemonClient(socket).json("GET", "/tsctl/status")
    models = status["models"]
    if as_json:
        echo_json(models)
        return
    if not models:
        echo("No model is registered; `tsctl register ARCHIVE` adds one", err=True)
        return
    from tsctl import render

    models = worst_first(models)
    table = columns(models)
    render.table([title for title, _ in table], zip(*(cells for _, cells in table), strict=True), drop=dropped(models))
    for title, text in card_rows(status.get("gpus", ()), gpus_of(models)):
        echo(f"{title}: {text}", err=True)  # the table is alone in stdout
    failed = [f"{model['name']}/{model['version']}" for model in models if model["state"] == "failed"]
    crashing = [f"{model['name']}/{model['version']}" for model in models if model["state"] == "crashing"]
    if crashing:
        hint(f"`tsctl events {crashing[0].partition('/')[0]}` shows why the workers of {crashing[0]} exit")
    if failed:
        hint(f"`tsctl describe {failed[0]}` shows why loading failed; retry with `tsctl retry {failed[0]}`")


def dropped(models: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the columns that a narrow terminal does without; of several versions, the version is part of the name."""
    needed = () if all(model["default"] for model in models) else ("VERSION",)
    return tuple(column for column in DROPPED if column not in needed)


def columns(models: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Return the titles and cells of the columns."""
    from tsctl import render

    several = {model["name"] for model in models if not model["default"]}
    recent, told = [model["recent"] for model in models], [beside_state(model) for model in models]
    held = [model["gpuMemory"] for model in models]
    return [
        ("MODEL", [render.named(model["name"], STYLE if troubles_of(model) else "") for model in models]),
        ("VERSION", [
            model["version"] + (" *" if model["default"] and model["name"] in several else "") for model in models
        ]),
        *([("TRAFFIC", [traffic_text(model) for model in models])] if any("share" in each for each in models) else []),
        ("STATE", [render.state(model["state"]) for model in models]),
        *([("TROUBLE", [text or "-" for text in told])] if any(told) else []),
        (">WORKERS", [f"{model['ready']}/{model['wanted']}" for model in models]),
        *([("GPU", [held_text(each, render.bytes_text) for each in held])] if any(held) else []),
        (">BATCH", [model["batchSize"] for model in models]),
        (">DELAY", [f"{model['maxBatchDelay']:g} ms" for model in models]),
        ("BATCHING", [model["policy"] for model in models]),
        (">REQ/S", [render.number_text(model["arrivalsPerSecond"]) for model in models]),
        (">ERRORS", [each["errors"] for each in recent]),
        (">P99", [_milliseconds(each["p99Ms"]) for each in recent]),
        (">QUEUE", [model["queued"] for model in models]),
    ]  # fmt: skip


def traffic_text(model: dict[str, Any]) -> str:
    """Return a version's share of its model's requests, as the route has it; `-` for a model without a route."""
    if "share" not in model:
        return "-"
    text = "shadow" if model["shadow"] else f"{model['share'] * 100:.3g} %"
    return ", ".join([text, *(said for each in extensions() for _, said in each.under_way(model))])


def _milliseconds(value: float | None) -> str:
    from tsctl.render import number_text

    return "-" if value is None else f"{number_text(value)} ms"
