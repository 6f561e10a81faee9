"""Which tests a change can break: `make affected` runs those files, the nearest to the change first.

A test can break where names of modules lead from it to a changed file: those that it imports, those that its conftests
import, and those that are named in a text, as programs for another interpreter are. A file that is no module counts for
those that name it, the folder beside them in which it is, or a pattern that it fits. Tests of real processes run the
whole program, whatever they import: only those that were changed, and THIN, stand for them. CI runs all.

Not pytest-testmon, which is kept well and takes several processes: it sees nothing of compiled modules, or of
programs that tests start, traces each test for what it sees, and knows nothing before it has run all of them once.
Names are found in a second, in what is there now.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import pytest

from tests.places import ROOT, place_of

ROOMS = ("daemon", "docs", "handlers", "tests", "tsctl")
THIN = "tests/e2e/test_predictions.py"
MAIN = ("origin/main", "main")  # the branch that a change is made for
NEAR = 3  # imports; with all further ones, a change of the daemon's core reaches nearly all tests
_NAMED = re.compile(rf"\b(?:{'|'.join(ROOMS)})(?:\.\w+)+")
_DOCSTRING = re.compile(r'\A""".*?"""', re.DOTALL)  # may name modules that are not needed: the map of the house does
_PATTERN = re.compile(r'"([^"\n]*/[^"\n]*\*\.\w+)"')  # as of `TESTS.glob("tsctl/transcripts/*.txt")`
_FROM = re.compile(rf"\bfrom ((?:{'|'.join(ROOMS)})[\w.]*) import (\([^)]*\)|[^\n]*)")


def needs_of(path: str, source: str, modules: Mapping[str, str]) -> set[str]:
    """Return the files of the modules that one names, and the conftests of a test."""
    source = _DOCSTRING.sub("", source)
    names = set(_NAMED.findall(source))
    for package, members in _FROM.findall(source):
        names |= {f"{package}.{member}" for member in re.findall(r"\w+", members)}
    found = {file for name in names for file in _files_of(name, modules)}
    if path.startswith("tests/"):
        found |= {f"{folder}/conftest.py" for folder in Path(path).parents} & modules.keys()
    return found - {path}


def _files_of(name: str, modules: Mapping[str, str]) -> Iterator[str]:
    """Yield the files of a module and of the packages around it, as far as the name leads to some."""
    words = place_of(name).split(".")
    for length in range(1, len(words) + 1):
        path = "/".join(words[:length])
        yield from {f"{path}.py", f"{path}/__init__.py"} & modules.keys()


def reads(path: str, source: str, file: str) -> bool:
    """Return whether a module seems to read a file that is no module."""
    read, module = PurePosixPath(file), PurePosixPath(path)
    if read.name in source or (read.parent.parent == module.parent and f'"{read.parent.name}"' in source):
        return True
    bases = [base for base in module.parents if base.name]  # folders that patterns may begin in
    return any(read.match(f"{base}/{pattern}") for pattern in _PATTERN.findall(source) for base in bases)


def distances(changed: Iterable[str], modules: Mapping[str, str]) -> dict[str, int]:
    """Return how many names lead from each module to a changed file; those from which none leads are left out.

    Args:
        changed: paths of files, from the root.
        modules: the source of each module, by its path.
    """
    others = [file for file in changed if file not in modules]
    needed_by: dict[str, set[str]] = {}
    for path, source in modules.items():
        for needed in needs_of(path, source, modules):
            needed_by.setdefault(needed, set()).add(path)
    found = dict.fromkeys((file for file in changed if file in modules), 0)
    for path, source in modules.items():
        if any(reads(path, source, file) for file in others):
            found.setdefault(path, 1)
    layer = set(found)
    while layer:
        reached = {(path, found[each] + 1) for each in layer for path in needed_by.get(each, ()) if path not in found}
        for path, away in sorted(reached, key=lambda each: each[1]):
            found.setdefault(path, away)
        layer = {path for path, _ in reached}
    return found


def breakable(changed: Iterable[str], modules: Mapping[str, str]) -> dict[str, int]:
    """Return the files of tests that a change can break, the nearest first, each with its distance."""
    found = distances(changed, modules)
    return {
        path: away
        for path, away in sorted(found.items(), key=lambda each: (each[1], each[0]))
        if Path(path).name.startswith("test_") and (away == 0 or path == THIN or not path.startswith("tests/e2e/"))
    }


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def _branched_from() -> str:
    """Return the commit at which this branch has left the main one; HEAD where there is none."""
    for name in MAIN:
        if _git("branch", "--all", "--list", name, f"remotes/{name}"):
            return _git("merge-base", "HEAD", name)[0]
    return "HEAD"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.affected", description="Run the tests that a change can break."
    )
    parser.add_argument("--since", metavar="REVISION", help="what counts as changed; default: since the main branch")
    parser.add_argument("--near", metavar="IMPORTS", type=int, default=NEAR, help="run files at most so far away")
    parser.add_argument("--list", action="store_true", help="print the files with their distances, and run none")
    options, further = parser.parse_known_args(arguments)
    changed = {*_git("diff", "--name-only", options.since or _branched_from())}
    changed |= {*_git("ls-files", "--others", "--exclude-standard")}
    modules = {
        str(path.relative_to(ROOT)): path.read_text()
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
        if "site-packages" not in path.parts
    }
    found = breakable(changed, modules)
    near = [path for path, away in found.items() if away <= options.near]
    if options.list:
        print(*(f"{away} {path}" for path, away in found.items()), sep="\n")
        return 0
    print(f"{len(changed)} files changed; {len(near)} files of tests, and {len(found) - len(near)} further away")
    return int(pytest.main(["-n", "2", "--dist", "loadfile", *further, *near])) if near else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
