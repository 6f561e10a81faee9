"""Run the process that measures sets of optimisations for `tsctl optimize`."""

import json
import sys
from typing import Any

from tsctl.errors import CliError
from tsctl.render import live
from tsctl.terminal.relay import events_of

OPTIMIZE = (sys.executable, "-P", "-m", "tsctl.daemon.extensions.optimizing.measuring")


def run(order: dict[str, Any], body: bytes, name: str) -> dict[str, Any]:
    """Run the process to its end, showing progress; return the result's document.

    Args:
        order: see daemon/extensions/optimizing/measuring/__main__.py.
        name: the model's, for the display.

    Raises:
        CliError: there is no result.
    """
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
