"""Run the process that measures sets of optimisations for `tsctl optimize`."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from tsctl.errors import CliError
from tsctl.render import LiveProgress, live
from tsctl.terminal.relay import relayed

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
        for event in events_of(OPTIMIZE, order, body, progress):
            match event.pop("stage"):
                case "loading" | "measuring" as stage:
                    progress.show(f"{stage} {name} with {event['optimize']}", event["done"], event["total"])
                case "failed":
                    raise CliError(f"{name}: {event['message']}", details=event["details"])
                case "done":
                    return event
    raise CliError("the measuring process ended without a result")


def events_of(
    command: Sequence[str], order: dict[str, Any], body: bytes, progress: LiveProgress
) -> Iterator[dict[str, Any]]:
    """Run the process, and yield its events; those that it writes to stderr are shown above the live line.

    Args:
        order: the first line of its input.
        body: the rest.

    Raises:
        CliError: the process ended otherwise than by a result or a failure.
    """
    with relayed(command, progress, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        with suppress(BrokenPipeError):  # the process has ended; its exit code gives the reason
            process.stdin.write(json.dumps(order).encode() + b"\n" + body)
        with suppress(BrokenPipeError):  # what is left of that is tried once more
            process.stdin.close()
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode not in (0, 1):
        raise CliError(f"the measuring process ended with exit code {process.returncode}")
