"""The seam of the command line: all that a capability adds to it. Its half is the folder tsctl/extensions/NAME.

    tsctl/extensions/NAME/__init__.py   COMMAND_LINE, an object of a subclass of the class below
    tsctl/extensions/NAME/VERB.py       the command of a verb: `command`, as in tsctl/commands

NAME is that of an extension of the daemon, or of one of the command line alone, as `console` is. The folders are
listed here, because importing the daemon's list takes 20 ms. A verb of the core imports none of them, unless it shows
what they add.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

Document = Mapping[str, Any]
_PACKAGE = "tsctl.extensions"


class Styled(NamedTuple):
    """A line, or a part of one, in one style, a name of rich; no meaning is in the style alone."""

    text: str
    style: str = ""


class TopColumn(NamedTuple):
    """A column of `tsctl top`, at the right of another one.

    Attributes:
        text: returns the text of a version, from its document in `/tsctl/live`.
        used: returns whether a version has a text; the column is shown if any has.
        beside: the title of the column at its left.
        outlives: the title of the column that is left out before it on a narrow terminal.
    """

    title: str
    width: int
    text: Callable[[Document], str]
    used: Callable[[Document], bool]
    beside: str
    outlives: str


class PastRate(NamedTuple):
    """How many requests a second came until a moment, in seconds since the epoch, from the moment before."""

    time: float
    rate: float


class Section(NamedTuple):
    """A part of `tsctl describe`, below the workers.

    Attributes:
        heading: empty for none.
        columns, rows: of a table (render.py); without rows there is none.
        lines: below it.
    """

    heading: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    lines: Sequence[str]


class CommandLine:
    """One capability at the command line; every member is empty by default.

    Attributes:
        verbs: verb → its group in the help, and one line.
        examples: verb → a text, and a line for a shell.
        synonyms: words of other programs → the verb with the same effect.
        columns: of `tsctl top`.
        documents: that a page in the browser may ask for: the last word of `/tsctl/WORD` → its parameters.
    """

    verbs: Mapping[str, tuple[str, str]] = {}
    examples: Mapping[str, tuple[tuple[str, str], ...]] = {}
    synonyms: Mapping[str, str] = {}
    columns: tuple[TopColumn, ...] = ()
    documents: Mapping[str, frozenset[str]] = {}

    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        """Return rows of `tsctl describe`, title and text, from the part `tsctl` of a version's document.

        Args:
            now: seconds since the epoch.
        """
        del document, now
        return ()

    def sections(self, document: Document, now: float) -> Sequence[Section]:
        """Return parts of `tsctl describe`, from the same document."""
        del document, now
        return ()

    def checked(self, document: Document) -> Sequence[tuple[str, str]]:
        """Return rows of `tsctl check`, title and text, from what it tells of a loaded model."""
        del document
        return ()

    def under_way(self, document: Document) -> Sequence[tuple[str, str]]:
        """Return what is under way at a version, title and text, beside its share of the requests in lists."""
        del document
        return ()

    def state(self, document: Document, now: float) -> Sequence[Styled]:
        """Return lines on a version's own screen of `tsctl top`, below its workers; `now` since the epoch."""
        del document, now
        return ()

    def absence(self, document: Document) -> str:
        """Return why a version has no workers, in a word or two for the table of `tsctl top`; empty if unknown here."""
        del document
        return ""

    def overview(self, document: Document) -> Sequence[str]:
        """Return facts about the daemon, above the table of `tsctl top`, from the document of `/tsctl/live`."""
        del document
        return ()

    def past(self, ask: Callable[[str], Document]) -> Mapping[tuple[str, str], Sequence[PastRate]]:
        """Return what versions did before `tsctl top` began: name and version → rates, the oldest first.

        Args:
            ask: returns the daemon's document at a path; raises CliError if the daemon tells none.
        """
        del ask
        return {}

    def evidence(self, document: Document) -> Sequence[Styled]:
        """Return lines on the same screen, below the shares of the model's versions."""
        del document
        return ()


@cache
def names() -> tuple[str, ...]:
    """Return the names of the extensions that add something to the command line."""
    folder = Path(__file__).parent / "extensions"
    return tuple(sorted(each.name for each in os.scandir(folder) if (folder / each.name / "__init__.py").exists()))


@cache
def extensions() -> tuple[CommandLine, ...]:
    return tuple(import_module(f"{_PACKAGE}.{name}").COMMAND_LINE for name in names())


def verbs() -> dict[str, tuple[str, str]]:
    """Return the verbs of all extensions, each with its group in the help, and one line."""
    return {verb: row for each in extensions() for verb, row in each.verbs.items()}


def module_of(verb: str) -> str:
    """Return the module of an extension's verb; empty if there is none."""
    for name, each in zip(names(), extensions(), strict=True):
        if verb in each.verbs:
            return f"{_PACKAGE}.{name}.{verb.replace('-', '_')}"
    return ""
