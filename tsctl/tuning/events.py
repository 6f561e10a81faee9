"""The lines of a process that measures: an order in, its progress out."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from tsctl.errors import CliError
from tsctl.render import LiveProgress
from tsctl.terminal.relay import relayed


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
        try:
            process.stdin.write(json.dumps(order).encode() + b"\n" + body)
            process.stdin.close()
        except BrokenPipeError:
            pass  # the process has ended; its exit code gives the reason
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode not in (0, 1):
        raise CliError(f"the measuring process ended with exit code {process.returncode}")
