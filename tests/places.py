"""Where a module lies: the folders `daemon` and `handlers` are beside `tsctl`, which holds links to them."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROOMS = ("daemon", "handlers", "tsctl")
_LINKED = re.compile(r"\Atsctl[./](?=(?:daemon|handlers)(?:[./]|\Z))")


def place_of(name: str) -> str:
    """Return a module's name, or path, as its place in the project has it: `daemon.http` for `tsctl.daemon.http`."""
    return _LINKED.sub("", name)


def module_of(path: Path) -> str:
    """Return the name by which a file of ours is imported."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    return f"tsctl.{name}" if name.partition(".")[0] in ("daemon", "handlers") else name
