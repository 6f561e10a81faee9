"""`python -m tests.lab house [--names] [--tree PATH]`: how many files an idea lives in, measured.

One table of a tree, this one by default: the core's files that name a capability (capabilities.py), and lines. With
--names also each line that names a capability.

`--changed BASE` prints instead, for each commit since BASE, how many files of the product outside its own folder of the
shelf it modifies, and which extension's folder that is.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.lab.counter.capabilities import CAPABILITIES
from tests.lab.counter.tree import ROOMS, Tree, commits, hits, line_count
from tests.places import ROOT


def rows(tree: Tree) -> Iterator[tuple[str, str]]:
    """Yield what is measured, and its value in this tree."""
    core = tree.core()
    named = hits(core)
    lines = {(hit.file, hit.line) for hit in named}
    yield (
        "core files that name a capability, and their lines that do",
        f"{len({hit.file for hit in named})}, {len(lines)}",
    )
    for capability in CAPABILITIES:
        own = [hit for hit in named if hit.capability == capability.name]
        yield f"… {capability.name}", f"{len({hit.file for hit in own})}, {len(own)}"
    in_core, in_lab = sum(map(line_count, core.values())), tree.lines("tests/lab/")
    for what, count in (
        ("lines of the product", tree.lines(*ROOMS)),
        ("… core of the daemon", in_core),
        ("… its capabilities", tree.lines("daemon/") - in_core),
        ("… handlers", tree.lines("handlers/")),
        ("… tsctl", tree.lines("tsctl/")),
        ("lines of tests, without the laboratory", tree.lines("tests/") - in_lab),
        ("lines of the laboratory, tests/lab", in_lab),
    ):
        yield what, f"{count:,}"


def print_names(tree: Tree) -> None:
    core = tree.core()
    print("\nlines of the core that name a capability:")
    for capability, file, line in hits(core):
        print(f"    {capability:16}{file}:{line}: {core[file].splitlines()[line - 1].strip()}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab house", description=__doc__.partition("\n")[0])
    parser.add_argument("--tree", type=Path, default=ROOT, help="measure another one")
    parser.add_argument("--names", action="store_true", help="print the lines that were counted, too")
    parser.add_argument(
        "--changed", metavar="BASE", help="print the files outside its folder of each commit since BASE"
    )
    chosen = parser.parse_args(arguments)
    if chosen.changed is not None:
        try:
            for commit in commits(chosen.tree, f"{chosen.changed}..HEAD"):
                print(f"{len(commit.outside):4} {commit.number} {commit.extension or '-':16} {commit.subject}")
        except (OSError, ValueError) as error:
            print(error, file=sys.stderr)
            return 2
        return 0
    tree = Tree(chosen.tree.resolve())
    for measure, value in rows(tree):
        print(f"{measure:90}{value}")
    if chosen.names:
        print_names(tree)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
