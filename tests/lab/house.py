"""`python -m tests.lab house [--names]`: how many files an idea lives in, measured.

One table: the files that a prediction and a registration enter (entered.py), the core's files that name a capability
(capabilities.yaml), and lines. With --names also the files that were entered, and each line that names a capability.

`--changed BASE` prints instead, for each commit since BASE, how many files of the product outside its own folder of the
shelf it modifies, and which extension's folder that is.
"""

import argparse
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.lab.entered import measure
from tests.places import ROOT

PLACES = ("daemon/", "handlers/", "tsctl/")
TUPLE = "daemon/server/extensions.py"  # the one file of the core that names extensions
CAPABILITIES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("capabilities.yaml").read_text())
_OWN = re.compile(r"(?:daemon|handlers|tsctl|tests)/extensions/(\w+)/")
_STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
_BLANK = {tokenize.NL, tokenize.COMMENT}
_BEFORE_STATEMENTS = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


class Hit(NamedTuple):
    """A line that names a capability."""

    capability: str
    file: str
    line: int


@cache
def sources() -> dict[str, str]:
    """Return the name of each Python file → its text; names are places, `daemon/…` for `tsctl/daemon/…`."""
    files = (path for place in (*PLACES, "tests/") for path in sorted((ROOT / place).rglob("*.py")))
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in files}


def core() -> dict[str, str]:
    """Return the sources of the daemon that are of no capability."""
    own = ("daemon/extensions/", *(place for each in CAPABILITIES.values() for place in each.get("places", ())))
    return {name: text for name, text in sources().items() if name.startswith("daemon/") and not name.startswith(own)}


@cache
def texts_of(source: str) -> tuple[tuple[str, int], ...]:
    """Return the names with their dots, `registry.routes.of`, and the strings of a file, each with its line.

    Comments and docstrings are left out.
    """
    found, name, line, before = list[tuple[str, int]](), "", 0, tokenize.ENCODING
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if name and (token.string == "." or (token.type == tokenize.NAME and name.endswith("."))):
            name += token.string
        else:
            found += [(name, line)] if name else []
            name, line = (token.string, token.start[0]) if token.type == tokenize.NAME else ("", 0)
        if token.type in _STRINGS and before not in _BEFORE_STATEMENTS:
            found.append((token.string, token.start[0]))
        if token.type not in _BLANK:
            before = token.type
    return tuple(found)


def hits(files: Mapping[str, str], *capabilities: str) -> list[Hit]:
    """Return the lines of these sources that name one; one for each capability, though a line may name it twice."""
    found = {
        Hit(name, file, line)
        for name in capabilities
        for file, source in files.items()
        if file != TUPLE and not file.startswith(tuple(CAPABILITIES[name].get("elsewhere", ("\n",))))
        for text, line in texts_of(source)
        if re.search(CAPABILITIES[name]["words"], text)
    }
    return sorted(found)


def changed(log: str) -> Iterator[str]:
    """Yield a line for each commit of a `git log` in the format of `main`.

    It has the number of the product's files outside the folders of the extension whose files the commit modifies most,
    that extension, and the commit's title.
    """
    for part in log.split("\0")[1:]:
        title, *names = part.splitlines()
        own = Counter(found[1] for name in names if (found := _OWN.match(name)))
        most = min(own, key=lambda name: (-own[name], name), default="")
        outside = sum(name.startswith(PLACES) and (not most or f"/extensions/{most}/" not in name) for name in names)
        yield f"{outside:4} {most or '-':16} {title}"


def rows(named: list[Hit]) -> Iterator[tuple[str, object]]:
    """Yield what is measured, and its value."""
    files, lines = {hit.file for hit in named}, {hit[1:] for hit in named}
    yield "core files that name a capability, and their lines that do", f"{len(files)}, {len(lines)}"
    for name in CAPABILITIES:
        own = [hit for hit in named if hit.capability == name]
        yield f"… {name}", f"{len({hit.file for hit in own})}, {len(own)}"

    def count(*places: str) -> int:
        return sum(len(text.splitlines()) for name, text in sources().items() if name.startswith(places))

    in_core, in_lab = count(*core()), count("tests/lab/")
    yield "lines of the product", count(*PLACES)
    yield "… core of the daemon", in_core
    yield "… its capabilities", count("daemon/") - in_core
    yield "… handlers", count("handlers/")
    yield "… tsctl", count("tsctl/")
    yield "lines of tests, without the laboratory", count("tests/") - in_lab
    yield "lines of the laboratory, tests/lab", in_lab


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab house", description="How many files an idea lives in.")
    parser.add_argument("--names", action="store_true", help="print the lines that were counted, too")
    parser.add_argument("--changed", metavar="BASE", help="count the files outside its folder of each commit since")
    given = parser.parse_args(arguments)
    if given.changed is not None:
        command = ["git", "log", "--no-merges", "--diff-filter=MD", "--name-only", "--format=%x00%h %s"]
        done = subprocess.run([*command, f"{given.changed}..HEAD"], cwd=ROOT, capture_output=True, text=True)
        sys.stderr.write(done.stderr)
        print(*changed(done.stdout), sep="\n")
        return 2 if done.returncode else 0
    registration, prediction = measure(ROOT)
    named = hits(core(), *CAPABILITIES)
    entered = (("a warm prediction", prediction), ("the registration of a handler of three lines", registration))
    for title, value in (
        *((f"files of the product that {what} enters", len(files)) for what, files in entered),
        *rows(named),
    ):
        print(f"{title:90}{value}")
    for what, files in entered if given.names else ():
        print(f"{what}:", *sorted(file.removeprefix(f"{ROOT}/tsctl/") for file in files), sep="\n    ")
    for capability, file, line in named if given.names else ():
        print(f"    {capability:16}{file}:{line}: {core()[file].splitlines()[line - 1].strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
