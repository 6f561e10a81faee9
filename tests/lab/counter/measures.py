"""The rows of the table that are read from a tree without running it."""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tests.lab.counter.capabilities import CAPABILITIES
from tests.lab.counter.commits import LATEST, latest, spread
from tests.lab.counter.named import hits
from tests.lab.counter.tree import ROOMS, Tree, line_count

ASSEMBLY = "daemon/server/assembly.py"


class Row(NamedTuple):
    """A measure, and its value in this tree."""

    measure: str
    value: str


def imported(source: str) -> set[str]:
    """Return the modules that a file imports, wherever the statement stands."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def targets_in(makefile: str) -> list[str]:
    """Return the targets that somebody calls by their names, not those that are files."""
    return [name for names in re.findall(r"^\.PHONY:(.*)", makefile, re.MULTILINE) for name in names.split()]


def static_rows(tree: Tree) -> Iterator[Row]:
    core = tree.core()
    named = hits(core)
    files, lines = {hit.file for hit in named}, {(hit.file, hit.line) for hit in named}
    yield Row("core files that name a capability, and their lines that do", f"{len(files)}, {len(lines):,}")
    for capability in CAPABILITIES:
        own = [hit for hit in named if hit.capability == capability.name]
        yield Row(f"… {capability.name}", f"{len({hit.file for hit in own})}, {len(own)}")
    in_core, in_daemon = sum(map(line_count, core.values())), tree.lines("daemon/")
    yield Row("lines of the product", f"{tree.lines(*ROOMS):,}")
    yield Row("… core of the daemon", f"{in_core:,}")
    yield Row("… its capabilities", f"{in_daemon - in_core:,}")
    yield Row("… handlers", f"{tree.lines('handlers/'):,}")
    yield Row("… tsctl", f"{tree.lines('tsctl/'):,}")
    in_lab = tree.lines("tests/lab/")
    yield Row("lines of tests, without the laboratory", f"{tree.lines('tests/') - in_lab:,}")
    yield Row("lines of the laboratory, tests/lab", f"{in_lab:,}")
    yield Row("targets of the Makefile", str(len(targets_in((tree.root / "Makefile").read_text()))))
    for what, source in (
        ("the file of `ModelVersion`", next(text for text in core.values() if "\nclass ModelVersion:" in text)),
        (f"`{ASSEMBLY}`", core[ASSEMBLY]),
    ):
        yield Row(f"{what}: lines, modules it imports", f"{line_count(source)}, {len(imported(source))}")
    if found := latest(tree.root):
        numbers = [len(commit.product) for commit in found]
        yield Row(f"product files that a commit modifies, median / p90 of the latest {LATEST}", spread(numbers))
