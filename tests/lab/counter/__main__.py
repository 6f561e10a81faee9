"""`python -m tests.lab house [--names] [--tree PATH]`: how many files an idea lives in, measured.

One table of a tree, this one by default: the core's files that name a capability (capabilities.py), lines, and what git
knows. With --names also each line that names a capability.

`--changed BASE` prints instead, for each commit since BASE, how many files of the product outside its own folder of the
shelf it modifies, and which extension's folder that is.
"""

import argparse
import sys
from pathlib import Path

from tests.lab.counter.commits import commits, spread
from tests.lab.counter.measures import static_rows
from tests.lab.counter.named import hits
from tests.lab.counter.tree import Tree
from tests.places import ROOT


def print_names(tree: Tree) -> None:
    core = tree.core()
    print("\nlines of the core that name a capability:")
    for capability, file, line in hits(core):
        print(f"    {capability:16}{file}:{line}: {core[file].splitlines()[line - 1].strip()}")


def print_changed(tree: Path, base: str) -> None:
    found = commits(tree, f"{base}..HEAD")
    for commit in found:
        print(f"{len(commit.outside):4} {commit.number} {commit.extension or '-':16} {commit.subject}")
    if found:
        print(
            f"files of the product outside its own folder, median / p90: {spread([len(one.outside) for one in found])}"
        )


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
            print_changed(chosen.tree, chosen.changed)
        except (OSError, ValueError) as error:
            print(error, file=sys.stderr)
            return 2
        return 0
    tree = Tree(chosen.tree.resolve())
    for row in static_rows(tree):
        print(f"{row.measure:90}{row.value}")
    if chosen.names:
        print_names(tree)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
