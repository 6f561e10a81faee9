"""Run the process that measures and simulates for `tsctl tune`: an order in, its progress out."""

import sys
from typing import Any

from tsctl.errors import CliError
from tsctl.render import live
from tsctl.tuning.events import events_of

TUNE = (sys.executable, "-P", "-m", "daemon.tools.tune")


def run(order: dict[str, Any], body: bytes, name: str) -> tuple[dict[str, Any], list[dict[str, Any]], list[str]]:
    """Run the process to its end, showing progress.

    Args:
        order: see daemon/tools/tune/order.py.
        name: the model's, for the display.

    Returns:
        The result's document, those of the batch times, and notes.

    Raises:
        CliError: there is no result.
    """
    measured: list[dict[str, Any]] = []
    notes: list[str] = []
    with live() as progress:
        progress.show(f"starting to measure {name}")
        for event in events_of(TUNE, order, body, progress):
            match event["stage"]:
                case "loading":
                    progress.show(f"loading {name}, {_workers(event)}", event["done"], event["total"])
                case "measuring":
                    busy = "" if event["workers"] == 1 else f", {event['busy']} busy"
                    text = f"measuring {name}, {_workers(event)}{busy}, batches of {event['size']}"
                    progress.show(text, event["done"], event["total"])
                case "measured":
                    measured.append(event)
                case "note":
                    notes.append(event["text"])
                case "replaying":
                    progress.show("replaying the load under other settings", event["done"], event["total"])
                case "trying":
                    text = f"trying {name}, {_workers(event)}, batches of at most {event['batchSize']}"
                    progress.show(text, event["done"], event["total"])
                case "failed":
                    raise CliError(event["message"], details=event["details"])
                case "done":
                    return event, measured, notes
    raise CliError("the measuring process ended without a result")


def _workers(event: dict[str, Any]) -> str:
    workers, threads = event["workers"], event["threads"]
    return f"{workers} worker{'s' * (workers > 1)} × {threads} thread{'s' * (threads > 1)}"
