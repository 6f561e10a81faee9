"""Lines after a registration, for people: the URL, settings in force, changes of a replacement, the next command."""

from typing import Any

from tsctl.client import DaemonClient, model_path
from tsctl.errors import hint
from tsctl.render import batching_text
from tsctl.setting_text import setting_name, setting_text, setting_unit
from tsctl.streams import echo

_ALONE = "The function takes one request: those of a batch run in turn; hints of `list[…]` take them together"


def show_registered(document: dict[str, Any]) -> None:
    """Print the URL, the settings in force and the next command to stderr.

    Args:
        document: of a registration, and its `url`, if it is known.
    """
    if "url" in document:
        echo(f"URL {document['url']}", err=True)
    for line in settings_lines(document):
        echo(line, err=True)
    hint(f"next: `{next_command(document)}`")


def url_of(client: DaemonClient, name: str, version: str) -> str:
    """Return the URL of a version's predictions: with the version, unless requests without one are answered by it."""
    status = client.json("GET", "/tsctl/status")
    default = any(each["name"] == name and each["version"] == version and each["default"] for each in status["models"])
    path = f"/predictions/{model_path(name if default else f'{name}/{version}')}"
    address = status["inferenceAddress"]
    return f"{address}{path}" if address else f"http://localhost{path}, on the control socket"


def starting_line(name: str, version: str) -> str:
    """Return the line after a command that does not wait: TorchServe's own names neither model nor effect."""
    return f'Model "{name}" Version: {version} starts its workers; `tsctl ls` shows when they are ready'


def settings_lines(document: dict[str, Any]) -> list[str]:
    """Return the line of the batching in force, and the notes; for a replacement also what it changed and kept."""
    size, delay, mode = document["batchSize"], document["maxBatchDelay"], document.get("mode", "batch")
    lines = [f"Batch size {size}, delay at most {delay:g} ms, batching {document['batching']}"]
    if mode != "batch":
        lines = [f"Batching {batching_text(document['batching'], size, delay, mode, document['places'])}"]
    if document.get("alone"):
        lines.append(_ALONE)
    lines += [f"note: {each}" for each in document.get("notes", ())]
    if document["replaced"]:
        changed = [_change(each) for each in document["changed"]]
        lines.append(f"Changed: {', '.join(changed) or 'no setting'}")
        if document["kept"]:
            lines.append(f"Kept: {', '.join(map(setting_name, document['kept']))} (`--reset` begins anew)")
    return lines


def next_command(document: dict[str, Any]) -> str:
    """Return the command that shows the most.

    The first worker if there is none; a larger batch if requests run alone, and the handler and its file take one; else
    a measurement.
    """
    name, one = _asked_as(document), document["batchSize"] == 1
    if document.get("workers") == 0 and not document.get("onDemand"):
        return f"tsctl scale {name} 1"
    larger = one and document.get("mostRows", 0) != 1 and not document.get("alone")
    if larger:
        return f"tsctl set {name} --batch-size 8"
    return f"tsctl bench {name} FILE{' --protocol v2' if document.get('inTensors') else ''}"


def _asked_as(document: dict[str, Any]) -> str:
    """Return MODEL, or MODEL/VERSION where the URL has the version, because MODEL is another version."""
    both = f"{document['modelName']}/{document['modelVersion']}"
    named = "url" in document and f"/predictions/{model_path(both)}" in document["url"]
    return both if named else str(document["modelName"])


def _change(change: dict[str, Any]) -> str:
    name, before, after = change["setting"], change["before"], change["after"]
    return f"{setting_name(name)} {setting_text(name, before)} → {setting_text(name, after)}{setting_unit(name)}"
