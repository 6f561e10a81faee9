"""`tsctl ls`."""

import json
from pathlib import Path

import click

from tsctl.client import DaemonClient
from tsctl.errors import hint
from tsctl.options import json_option
from tsctl.verb import Verb


@click.command(cls=Verb)
@json_option
@click.pass_obj
def command(socket: Path | None, as_json: bool) -> None:
    """List the registered models; `*` marks a default version among several.

    REQ/S is the recent arrival rate.
    """
    models = DaemonClient(socket).json("GET", "/tsctl/status")["models"]
    if as_json:
        click.echo(json.dumps(models, indent=2))
        return
    if not models:
        click.echo("No model is registered; `tsctl register ARCHIVE` adds one", err=True)
        return
    from tsctl import render

    several = {model["name"] for model in models if not model["default"]}
    rows = [
        (
            model["name"],
            model["version"] + (" *" if model["default"] and model["name"] in several else ""),
            render.state(model["state"]),
            f"{model['ready']}/{model['wanted']}",
            model["batchSize"],
            f"{model['maxBatchDelay']:g} ms",
            model["policy"],
            render.number_text(model["arrivalsPerSecond"]),
            model["queued"],
        )
        for model in models
    ]
    render.table(("MODEL", "VERSION", "STATE", ">WORKERS", ">BATCH", ">DELAY", "BATCHING", ">REQ/S", ">QUEUE"), rows)
    failed = [f"{model['name']}/{model['version']}" for model in models if model["state"] == "failed"]
    crashing = [f"{model['name']}/{model['version']}" for model in models if model["state"] == "crashing"]
    if crashing:
        hint(f"`tsctl logs {crashing[0].partition('/')[0]}` shows why the workers of {crashing[0]} exit")
    if failed:
        hint(f"`tsctl describe {failed[0]}` shows why loading failed; retry with `tsctl retry {failed[0]}`")
