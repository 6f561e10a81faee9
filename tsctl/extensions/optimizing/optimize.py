"""`tsctl optimize`."""

import json
import sys
from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient, model_path
from tsctl.errors import CliError, ServedByProgram
from tsctl.options import MORE_THAN_ZERO, content_type_option, json_option, kind_type, model_argument, sample_argument
from tsctl.setting_text import NO_NAMES
from tsctl.streams import echo, echo_json
from tsctl.terminal.verb import Verb

OPTIMIZE = (sys.executable, "-P", "-m", "tsctl.daemon.extensions.optimizing.measuring")
_BEST, _DEFAULT = "best", "default"


class _SetType(click.ParamType[str]):
    """A value of `--apply`: the names of `--optimize`, or one of two words."""

    name = "set"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from tsctl.daemon.tables import MODEL_SETTINGS

        if value in (_BEST, _DEFAULT):
            return str(value)
        (row,) = [row for row in MODEL_SETTINGS if row.name == "optimize"]
        return str(kind_type(row.kind).convert(value, param, ctx))


@click.command(cls=Verb)
@model_argument
@sample_argument
@content_type_option
@click.option(
    "--seconds",
    type=MORE_THAN_ZERO,
    default=3.0,
    metavar="S",
    help="Duration of each measurement in seconds [default: 3].",
)
@click.option(
    "--apply", "applied", is_flag=False, flag_value=_BEST, type=_SetType(), metavar="[SET]",
    help="Register the model again with this set; without a value measure, and take the recommended one.",
)  # fmt: skip
@json_option
@click.pass_obj
def command(
    socket: Path | None,
    model: str,
    sample: Path | None,
    content_type: str | None,
    seconds: float,
    applied: str | None,
    as_json: bool,
) -> None:
    """Measure MODEL with sets of optimizations, and recommend the fastest.

    Loads one set after the other in a temporary worker with the threads and the batch size of the
    model, beside one with the present set, and repeats one request in full batches of both in turns:
    FILE, by default the recorded request, or the archive's `warmup`.
    Each set is added to the handler's defaults.
    MODEL serves throughout; run this command while the load is low.

    \b
    OPTIMIZE    names for `register --optimize`; `default` without any
    BATCH OF N  shortest time of a full batch
    GAIN        over the plain model, `none`
    DRIFT       largest relative difference of the answers
    AGREE       best classes that stay the same
    LOAD        first load, with checks; later ones take less

    --apply SET registers the same archive again, as `register --replace --optimize SET` does: no
    request fails, and all other settings are kept.
    """
    from tsctl.tuning.inputs import sample_input, surroundings

    client = DaemonClient(socket)
    path = model_path(model)
    if applied not in (None, _BEST):
        document = _apply(client, path, str(applied))
        if as_json:
            echo_json(document)
        else:
            _show_applied(document)
        return
    worker = client.json("GET", f"/tsctl/worker/{path}")
    mode = worker["batching"]["mode"]
    if mode != "batch":
        raise CliError(f"{model} runs its requests on their own (`{mode}`): there are no batches to measure")
    body, kind, _ = sample_input(client, path, sample, content_type)
    said = {each["name"]: each for each in client.json("GET", "/tsctl/config")}
    order = {
        "model": worker,
        "settings": surroundings(said),
        "contentType": kind,
        "seconds": seconds,
    }
    from tsctl.extensions.optimizing import table

    found = _measured(order, body, worker["modelName"])
    best = found["recommended"]
    found |= {"model": worker["modelName"], "version": worker["modelVersion"]}
    found["command"] = None if best is None else f"tsctl optimize {model} --apply {best}"
    if not as_json:
        table.show(found)
    if applied is not None and best is not None:
        found["applied"] = _apply(client, path, best)
        if not as_json:
            _show_applied(found["applied"])
    if as_json:
        echo_json(found)


def _measured(order: dict[str, Any], body: bytes, name: str) -> dict[str, Any]:
    """Run the process that measures, showing progress; return the result's document.

    Args:
        order: see daemon/extensions/optimizing/measuring/__main__.py.

    Raises:
        CliError: there is no result.
    """
    from tsctl.render import live
    from tsctl.terminal.relay import events_of

    with live() as progress:
        progress.show(f"starting to measure {name}")
        for event in events_of(OPTIMIZE, progress, "the measuring process", json.dumps(order).encode() + b"\n" + body):
            match event.pop("stage"):
                case "loading" | "measuring" as stage:
                    progress.show(f"{stage} {name} with {event['optimize']}", event["done"], event["total"])
                case "failed":
                    raise CliError(f"{name}: {event['message']}", details=event["details"])
                case "done":
                    return event
    raise CliError("the measuring process ended without a result")


def _show_applied(document: dict[str, Any]) -> None:
    from tsctl.progress import warn
    from tsctl.terminal.registered import show_registered

    echo(document["status"])
    warn(document)
    show_registered(document)


def _apply(client: DaemonClient, path: str, names: str) -> dict[str, Any]:
    """Register the archive of a version again with these optimisations; everything else stays.

    Returns:
        The daemon's document of the registration.

    Raises:
        CliError: the version is not registered for longer than a program runs, or does not load so.
    """
    from tsctl.progress import work

    worker = client.json("GET", f"/tsctl/worker/{path}")
    name, version = worker["modelName"], worker["modelVersion"]
    versions = [each for each in client.json("GET", "/tsctl/registrations")["versions"] if each["name"] == name]
    if any(each["ephemeral"] for each in versions):
        raise ServedByProgram(name)
    asked = next(each for each in versions if each["version"] == version)
    document: dict[str, Any] = work(
        client,
        "POST",
        "/models",
        subject=name,
        hint="`tsctl describe` shows its progress",
        url=asked["url"],
        model_name=name,
        model_version=version,
        sha256=asked["sha256"],
        handler=asked["handler"],
        replace="true",
        synchronous="true",
        optimize=NO_NAMES if names == _DEFAULT else names,
    )
    return document
