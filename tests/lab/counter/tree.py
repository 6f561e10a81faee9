"""The Python files of a tree: which part of the program each one is, and which of them name a capability."""

import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from tests.lab.counter.capabilities import CAPABILITIES, Capability

_OWN = re.compile(r"(?:daemon|handlers|tsctl|tests)/extensions/(\w+)/")


class Commit(NamedTuple):
    """A commit: its short hash, its subject, and the files that were there before, and that it changes or deletes."""

    number: str
    subject: str
    modified: tuple[str, ...]

    @property
    def product(self) -> list[str]:
        return [name for name in self.modified if name.startswith(ROOMS)]

    @property
    def extension(self) -> str:
        """The extension of whose files it modifies the most; empty if it modifies none of any."""
        own = Counter(found[1] for name in self.modified if (found := _OWN.match(name)))
        return min(own, key=lambda name: (-own[name], name), default="")

    @property
    def outside(self) -> list[str]:
        """The files of the product that are not in that extension's folders."""
        own = f"/extensions/{self.extension}/"
        return [name for name in self.product if not self.extension or own not in name]


def read_log(text: str) -> list[Commit]:
    """Return the commits of a `git log` in the format of `commits`."""
    found = []
    for part in text.split("\0")[1:]:
        head, *names = part.splitlines()
        number, _, subject = head.partition(" ")
        found.append(Commit(number, subject, tuple(name for name in names if name)))
    return found


def commits(tree: Path, *arguments: str) -> list[Commit]:
    """Return commits of a tree, the latest first.

    Args:
        arguments: of `git log`.

    Raises:
        OSError: there is no git.
        ValueError: git does not accept the arguments, or the tree is none of its own.
    """
    command = ["git", "-C", str(tree), "log", "--no-merges", "--diff-filter=MD", "--name-only", "--format=%x00%h %s"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    return read_log(done.stdout)


ROOMS = ("daemon/", "handlers/", "tsctl/")
SHELF = "daemon/extensions/"
TUPLE = "daemon/server/extensions.py"  # the one file of the core that names extensions
_STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
_BLANK = {tokenize.NL, tokenize.COMMENT}
_BEFORE_STATEMENTS = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


class Text(NamedTuple):
    """A dotted name, `registry.routes.of`, or a string, and its line."""

    text: str
    line: int


class Hit(NamedTuple):
    """A line that names a capability."""

    capability: str
    file: str
    line: int


class Tree:
    """The files of a tree, read once.

    Attributes:
        sources: the name of each Python file → its text; names are places, `daemon/…` for `tsctl/daemon/…`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources = {
            path.relative_to(root).as_posix(): path.read_text()
            for room in (*ROOMS, "tests/")
            for path in sorted((root / room).rglob("*.py"))
        }

    def within(self, *places: str) -> dict[str, str]:
        """Return the sources below these folders, or with these names."""
        return {name: text for name, text in self.sources.items() if name.startswith(places)}

    def core(self) -> dict[str, str]:
        """Return the sources of the daemon that are of no capability."""
        own = (SHELF, *(place for each in CAPABILITIES for place in each.places))
        return {name: text for name, text in self.within("daemon/").items() if not name.startswith(own)}

    def lines(self, *places: str) -> int:
        return sum(map(line_count, self.within(*places).values()))


def line_count(text: str) -> int:
    return len(text.splitlines())


@cache
def texts_of(source: str) -> tuple[Text, ...]:
    """Return the names and strings of a file, in order, without comments and docstrings."""
    return tuple(_texts_of(source))


def _texts_of(source: str) -> Iterator[Text]:
    name, line = "", 0
    before = tokenize.ENCODING
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if name and (token.string == "." or (token.type == tokenize.NAME and name.endswith("."))):
            name += token.string
        else:
            if name:
                yield Text(name, line)
            name, line = (token.string, token.start[0]) if token.type == tokenize.NAME else ("", 0)
        if token.type in _STRINGS and before not in _BEFORE_STATEMENTS:
            yield Text(token.string, token.start[0])
        if token.type not in _BLANK:
            before = token.type


def hits(sources: Mapping[str, str], capabilities: Iterable[Capability] = CAPABILITIES) -> list[Hit]:
    """Return the lines of these sources that name one; one for each capability, though a line may name it twice.

    Args:
        sources: of the core; the tuple of extensions may name all.
    """
    found = {
        Hit(capability.name, file, text.line)
        for capability in capabilities
        for file, source in sources.items()
        if file != TUPLE and not file.startswith(capability.elsewhere or ("\n",))
        for text in texts_of(source)
        if capability.words.search(text.text)
    }
    return sorted(found)
