"""`tsctl status`."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tsctl.client import DaemonClient
from tsctl.gpu_text import card_rows
from tsctl.launch import further_addresses
from tsctl.options import json_option
from tsctl.streams import echo_json
from tsctl.terminal.verb import Verb
from tsctl.trouble import STYLE, troubles_of


@click.command(cls=Verb)
@json_option
@click.pass_obj
def command(socket: Path | None, as_json: bool) -> None:
    """Show the daemon and a summary of its models. Exit code 3 means that no daemon is running."""
    status = DaemonClient(socket).json("GET", "/tsctl/status")
    if as_json:
        echo_json(status)
        return
    from tsctl import render

    models = status["models"]
    ready = sum(model["state"] in ("ready", "crashing") and model["ready"] > 0 for model in models)
    version = f"tsctl {status['version']}{' (compiled)' if status.get('compiled') else ''}"
    up = status.get("upSeconds", time.time() - status["started"])  # a daemon of before does not tell it
    render.facts(
        [
            ("daemon", f"pid {status['pid']}, {version}, Python {status.get('pythonVersion', status['python'])}"),
            ("up for", render.duration_text(up)),
            ("predictions", status["inferenceAddress"] or "on the control socket"),
            *further_addresses(status),
            ("control", status["socket"]),
            ("model store", status["modelStore"] or "none"),
            ("state", status["stateDir"]),
            *card_rows(status.get("gpus", ())),
            ("models", f"{ready} of {len(models)} ready" if models else "none"),
            ("requests", f"{sum(m['running'] for m in models)} running, {sum(m['queued'] for m in models)} waiting"),
            *last_minute(models),
            ("in trouble", render.named(", ".join(_in_trouble(models)), STYLE)),
            *troubles(status),
        ]
    )


def _in_trouble(models: Sequence[dict[str, Any]]) -> list[str]:
    return [f"{each['name']}/{each['version']} ({', '.join(found)})" for each in models if (found := troubles_of(each))]


def troubles(status: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a row for each server that has ended since the start, and one for exceptions that nothing has caught."""
    from tsctl.render import duration_text

    rows = []
    for each in status.get("servers", ()):
        if each["ends"]:
            times = "once" if each["ends"] == 1 else f"{each['ends']} times"
            ago = duration_text(time.time() - each["at"])
            now = "up again" if each["up"] else "down, and being started again"
            rows.append(("server", f"{each['name']}: {now}; ended {times}, last {ago} ago: {each['why']}"))
    errors = status.get("internalErrors", 0)
    if errors:
        rows.append(("internal errors", f"{errors}; see `tsctl events --level error`"))
    return rows


def last_minute(models: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return the row of recent requests, with the slowest model's latency; empty without models."""
    from tsctl.render import number_text

    if not models:
        return []
    recent = [(model, model["recent"]) for model in models]
    requests, errors = (sum(each[name] for _, each in recent) for name in ("requests", "errors"))
    texts = [f"{requests} request{'' if requests == 1 else 's'}", f"{errors} error{'' if errors == 1 else 's'}"]
    timed = [(each["p99Ms"], f"{model['name']}/{model['version']}") for model, each in recent if each["p99Ms"]]
    if timed:
        slowest, name = max(timed)
        texts.append(f"p99 up to {number_text(slowest)} ms ({name})")
    return [("last minute", ", ".join(texts))]
