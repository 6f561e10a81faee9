"""`tsctl set`."""

from pathlib import Path
from typing import Any

import click

from daemon.model_settings import MODEL_SETTINGS, ModelSetting
from tsctl.client import Client, model_path
from tsctl.options import model_argument, model_parameters, set_options

_ROWS = {row.yaml: row for row in MODEL_SETTINGS}


@click.command
@model_argument
@set_options
@click.pass_obj
def command(socket: Path | None, /, model: str, **settings: Any) -> None:
    """Change how MODEL is served, while it serves.

    Workers go on, and nothing that waits or runs is lost. The new values are kept over a restart,
    and win over the archive's model-config.yaml; `tsctl config MODEL` shows them as `set`.

    A handler finds a new batch size in context.system_properties; one that used it only while it
    was initialized needs new workers: `tsctl scale MODEL --workers 0`, then up again.

    Workers are changed with `tsctl scale`. What a worker is made of (handler, devices, retry and the
    other settings that `tsctl config MODEL` marks) takes a registration, `tsctl register --replace`.
    """
    asked = model_parameters(settings)
    if all(value is None for value in asked.values()):
        raise click.UsageError("nothing is to be changed: give at least one option, such as `--batch-size 8`")
    document = Client(socket).json("PATCH", f"/models/{model_path(model)}", **asked)
    for change in document["changes"]:
        click.echo(_sentence(change, f"`{document['modelName']}` {document['modelVersion']}"))


def _sentence(change: dict[str, Any], of: str) -> str:
    row = _ROWS.get(change["name"])  # None, if a daemon of another version knows more settings
    name = change["name"] if row is None else row.label
    unit = f" {row.kind.unit}" if row is not None and row.kind.unit else ""
    before, now = _text(row, change["from"]), _text(row, change["to"])
    if before == now:
        return f"The {name} of {of} stays {now}{unit}"
    return f"Set the {name} of {of} from {before} to {now}{unit}"


def _text(row: ModelSetting | None, value: Any) -> str:
    """Write a value, which came in the unit of model-config.yaml, in that of the option."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return "none"
    if row is not None and row.yaml_kind is not None:
        value = row.kind.show(row.yaml_kind.read(value))
    return f"{value:g}" if isinstance(value, float) else str(value)
