"""The state machines, drawn from their transition tables, with each state's comment in the source."""

import re
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docs.generate.markdown import code, table
from tsctl.daemon.core import job
from tsctl.daemon.http.states import connection, receiver
from tsctl.daemon.lifecycle.upgrade import states as room
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.workers import state

ROOT = Path(__file__).parents[2]
# Title → what it is the life of, the module with `TRANSITIONS`.
MACHINES: Mapping[str, tuple[str, ModuleType]] = {
    "A connection": ("One client's connection, from its first byte to its end.", connection),
    "A receiver": ("What the next bytes of a connection belong to.", receiver),
    "A job": ("One request that waits for its answer.", job),
    "A worker": ("One process with one version loaded.", state),
    "An upgrade": ("The steps of the daemon that is replaced.", room),
}


def machines_on_the_shelf() -> list[ModuleType]:
    """Return the modules of extensions that have a table of transitions."""
    files = [
        file
        for extension in EXTENSIONS
        for file in sorted((ROOT / "daemon/extensions" / extension.name).glob("*.py"))
        if re.search("^TRANSITIONS: ", file.read_text(), re.MULTILINE)
    ]
    return [import_module(f"tsctl.daemon.extensions.{file.parent.name}.{file.stem}") for file in files]


def states() -> str:
    """Write each machine: a drawing, and its states."""
    parts = [
        "# State machines\n",
        "Nothing but the table in the named module changes such a state; an arrow that is not in it is a bug, and"
        " raises. A receiver's changes several times in each request, without a look-up: there a test observes that each"
        " change is an arrow. These drawings are generated from the tables.\n",
    ]
    shelf = {title: (text, module) for module in machines_on_the_shelf() for title, text in [_named(module)]}
    for title, (text, module) in {**MACHINES, **shelf}.items():
        transitions = module.TRANSITIONS
        parts += [f"## {title}\n", f"{text} `{module.__name__.replace('.', '/')}.py`\n", drawing(transitions)]
        said = _comments(module)
        rows = [(code(each.name), said.get(each.name, ""), _arrows(arrows)) for each, arrows in transitions.items()]
        parts.append(table(("state", "", "event → next"), rows))
    return "\n".join(parts)


def _named(module: ModuleType) -> tuple[str, str]:
    """Return the title of a machine, and its life, from the first line of its module: `A rollout: its plan …`."""
    title, _, text = (module.__doc__ or "").partition("\n")[0].partition(": ")
    return title.rstrip("."), text[:1].upper() + text[1:] or "Its life:"


def drawing(transitions: Mapping[Enum, Mapping[Any, Enum]]) -> str:
    """Return a mermaid diagram; arrows with the same ends are one."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {next(iter(transitions)).name}"]
    for here, arrows in transitions.items():
        for there in dict.fromkeys(arrows.values()):
            events = ", ".join(event.name.lower() for event, to in arrows.items() if to is there)
            lines.append(f"    {here.name} --> {there.name}: {events}")
        if not arrows:
            lines.append(f"    {here.name} --> [*]")
    return "\n".join([*lines, "```", ""])


def _arrows(arrows: Mapping[Any, Enum]) -> str:
    return ", ".join(f"{event.name.lower()} → {code(there.name)}" for event, there in arrows.items()) or "the end"


def _comments(module: ModuleType) -> dict[str, str]:
    # Not inspect.getsource: of a compiled module there is none.
    source = (ROOT / module.__name__.replace(".", "/")).with_suffix(".py").read_text()
    pattern = r'^    ([A-Z]+) = (?:auto\(\)|"[a-z ]+")  # (.*)$'
    return dict(re.findall(pattern, source, re.MULTILINE))
