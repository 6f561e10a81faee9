"""`tsctl config`."""

from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient, model_path
from tsctl.daemon.tables import MODEL_SETTINGS
from tsctl.options import json_option, optional_model_argument
from tsctl.streams import echo_json
from tsctl.terminal.verb import Verb

_UNITS = {row.yaml: f" {row.written.unit}" for row in MODEL_SETTINGS if row.written.unit}


@click.command(cls=Verb)
@optional_model_argument
@json_option
@click.pass_obj
def command(socket: Path | None, model: str | None, as_json: bool) -> None:
    """Show each setting of the daemon, or of MODEL, and its source.

    \b
    Sources, the first wins:
      daemon   flag, environment, a config.properties file, default
      model    register, set or scale; its model-config.yaml; the models block
               of config.properties; the daemon's setting; default

    For a model, the last column shows when a change by `tsctl set` takes effect. `-` means that
    `tsctl set` cannot change the setting: use `tsctl register --replace`, or `tsctl scale` for workers.
    """
    client = DaemonClient(socket)
    if model is None:
        settings = client.json("GET", "/tsctl/config")
    else:
        settings = client.json("GET", f"/models/{model_path(model)}")[0]["tsctl"]["settings"]
    if as_json:
        echo_json(settings)
        return
    from tsctl import render

    rows = [(setting["name"], _shown(setting["value"]), setting["origin"]) for setting in settings]
    if model is None:
        render.table(("SETTING", "VALUE", "FROM"), rows, drop=("FROM",))
        return
    with_units = [
        (name, value if value == "-" else value + _UNITS.get(name, ""), origin, setting.get("changes") or "-")
        for (name, value, origin), setting in zip(rows, settings, strict=True)
    ]
    columns = ("SETTING", "VALUE", "FROM", "A CHANGE COUNTS")
    render.table(columns, with_units, drop=("A CHANGE COUNTS", "FROM"))


def _shown(value: Any) -> str:
    if value in (None, ""):
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
