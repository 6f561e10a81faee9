"""Wait for the daemon while it executes a command, and show its progress."""

import sys
from pathlib import Path
from typing import Any

from tsctl.client import DaemonClient, checked, model_path
from tsctl.errors import CliError, Interrupted
from tsctl.render import bytes_text, live
from tsctl.streams import echo
from tsctl.terminal.registered import starting_line


def work(client: DaemonClient, method: str, target: str, subject: str, hint: str, **parameters: Any) -> Any:
    """Send a command; with a terminal on stderr, show its progress.

    Args:
        subject: the object of the command, for the display.
        hint: how to see, or undo, the work that continues after Ctrl-C.

    Raises:
        CliError: the daemon rejected the command.
        Interrupted: the user pressed Ctrl-C; the daemon continues.
    """
    try:
        if not sys.stderr.isatty():
            return client.json(method, target, warnings="true", **parameters)
        return _watched(client, method, target, subject, warnings="true", **parameters)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; the daemon goes on with `{subject}`", hint) from None


def warn(document: Any) -> None:
    """Print the daemon's warning, if any, to stderr."""
    if "warning" in document:
        echo(f"warning: {document['warning']}", err=True)


def _watched(client: DaemonClient, method: str, target: str, subject: str, **parameters: Any) -> Any:
    with live() as progress:
        progress.show(f"sending {subject}")
        for event in client.events(method, target, **parameters):
            done, total = event.get("done", 0), event.get("total", 0)
            match event["stage"]:
                case "downloading":
                    of = f" of {bytes_text(total)}" if total else ""
                    progress.show(f"downloading {subject}, {bytes_text(done)}{of}", done, total or None)
                case "unpacking":
                    progress.show(f"unpacking {subject}, {bytes_text(done)} of {bytes_text(total)}", done, total)
                case "installing":
                    progress.show(f"installing the requirements of {subject}")
                case "loading":
                    progress.show(f"loading {subject}, {done} of {total} workers ready", done, total or None)
                case "done":
                    return checked(event["status"], event["document"])
    raise CliError("the daemon exited before the command was done", "see `tsctl logs`")


def act_on_version(socket: Path | None, model: str, action: str, *, wait: bool) -> None:
    """Load, restart or retry a version's workers, and print the result.

    Args:
        action: the last word of the route.
        wait: for the workers; else the line says where they are seen.
    """
    client = DaemonClient(socket)
    named = client.json("GET", f"/models/{model_path(model)}")[0]
    name, version = named["modelName"], named["modelVersion"]
    path = f"/models/{model_path(f'{name}/{version}')}/{action}"
    hint = f"`tsctl describe {model}` shows its progress"
    document = work(client, "POST", path, subject=model, hint=hint, synchronous="true" if wait else "false")
    echo(document["status"] if wait else starting_line(name, version))
