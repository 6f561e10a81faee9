"""Where a module lies: the folders `daemon` and `handlers` are beside `tsctl`, which holds links to them."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("daemon", "handlers", "tsctl")
_LINKED = re.compile(r"\Atsctl[./](?=(?:daemon|handlers)(?:[./]|\Z))")


def place_of(name: str) -> str:
    """Return a module's name, or path, as its place in the project has it: `daemon.http` for `tsctl.daemon.http`."""
    return _LINKED.sub("", name)
