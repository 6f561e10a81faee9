"""`python -m tests.lab house [--static] [--names] [--tree PATH]`: how many files an idea lives in, measured.

One table of a tree, this one by default: the files that a registration and a prediction enter (entered.py; some
seconds, unless --static), the core's files that name a capability (capabilities.py), kinds of hooks (hooks.py), lines,
and what git knows. With --names also the files that were entered, and each line that names a capability.

`--changed BASE` prints instead, for each commit since BASE, how many files of the product outside its own folder of the
shelf it modifies, and which extension's folder that is.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.lab.counter.commits import commits, spread
from tests.lab.counter.entered import Files, measure
from tests.lab.counter.measures import Row, static_rows
from tests.lab.counter.methods import common
from tests.lab.counter.named import hits
from tests.lab.counter.recorder import ROOMS
from tests.lab.counter.tree import Tree, line_count
from tests.places import ROOT


def entered_rows(tree: Tree, registration: Files, prediction: Files) -> Iterator[Row]:
    for what, found in (("prediction", prediction), ("registration", registration)):
        files = frozenset().union(*found.values())
        parts = ", ".join(f"{len(names)} in the {process}" for process, names in found.items())
        yield Row(
            f"product files that a {what} enters, and their lines",
            f"{len(files)}, {sum(line_count(tree.sources[name]) for name in files):,} ({parts})",
        )


def print_files(what: str, found: Files) -> None:
    for process, names in found.items():
        print(f"\n{what}, in the {process}:", *sorted(names), sep="\n    ")


def print_names(tree: Tree) -> None:
    core = tree.core()
    print("\nlines of the core that name a capability:")
    for capability, file, line in hits(core):
        print(f"    {capability:16}{file}:{line}: {core[file].splitlines()[line - 1].strip()}")
    print("\nmethods in many classes:")
    for name, number in common(tree.within(*ROOMS)).items():
        print(f"    {name:16}{number}")


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
    parser.add_argument("--static", action="store_true", help="start no daemon")
    parser.add_argument("--names", action="store_true", help="print the files and lines that were counted, too")
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
    entered = None if chosen.static else measure(tree.root)
    rows = [*([] if entered is None else entered_rows(tree, *entered)), *static_rows(tree)]
    for row in rows:
        print(f"{row.measure:90}{row.value}")
    if chosen.names:
        if entered is not None:
            for what, found in zip(("a registration enters", "a prediction enters"), entered, strict=True):
                print_files(what, found)
        print_names(tree)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
