"""Wait for the daemon while it executes a command, and show its progress."""

import sys
from typing import Any

from tsctl.client import DaemonClient, checked
from tsctl.errors import CliError, Interrupted
from tsctl.render import bytes_text, live
from tsctl.streams import echo


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
