"""`tsctl set`."""

from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient, model_path
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.options import json_option, model_argument, model_parameters, set_options
from tsctl.setting_text import setting_name, setting_text, setting_unit
from tsctl.streams import echo, echo_json
from tsctl.terminal.verb import Verb


class _SetVerb(Verb):
    """`set`, which says of a setting that does not change while a model serves what changes it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            why = next((row.why for row in MODEL_SETTINGS if row.flag == error.option_name), "")
            if not why:
                raise
            raise click.UsageError(f"No such option '{error.option_name}'. {why}", ctx) from None


@click.command(cls=_SetVerb)
@model_argument
@set_options
@json_option
@click.pass_obj
def command(socket: Path | None, /, model: str, as_json: bool, **settings: Any) -> None:
    """Change settings of MODEL while it serves.

    Workers keep running, and no waiting or running request is lost. The new values survive a restart
    and override the archive's model-config.yaml; `tsctl config MODEL` shows their source as `set`.

    Handlers read the batch size from context.system_properties; a handler that reads the batch size
    only in `initialize` needs new workers: `tsctl restart MODEL`.

    Change the number of workers with `tsctl scale`. The settings that workers are started with
    (handler, devices, retry and others, `-` in `tsctl config MODEL`) take `tsctl register --replace`.
    """
    asked = model_parameters(settings)
    if all(value is None for value in asked.values()):
        raise click.UsageError("no change requested: add at least one option, such as `--batch-size 8`")
    document = DaemonClient(socket).json("PATCH", f"/models/{model_path(model)}", **asked)
    if as_json:
        echo_json(document)
        return
    for change in document["changes"]:
        echo(_sentence(change, f"`{document['modelName']}` {document['modelVersion']}"))


def _sentence(change: dict[str, Any], of: str) -> str:
    name, unit = setting_name(change["name"]), setting_unit(change["name"])
    before, now = setting_text(change["name"], change["from"]), setting_text(change["name"], change["to"])
    if before == now:
        return f"The {name} of {of} stays {now}{unit}"
    return f"Set the {name} of {of} from {before} to {now}{unit}"
