"""The program that the words of a container mean, as TorchServe's `dockerd-entrypoint.sh` reads them.

(none), serve …             the server, which stays
torchserve --start …        the same, with TorchServe's flags
torchserve --stop, …        the program `torchserve`
"torchserve --start …"      the same in one word, as some manifests write it
"a line && for a shell"     a shell with this line
anything else               that program, in place of this one
"""

import re
import shlex
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

_SHELL = re.compile(r"[;&|<>$`(){}*?\n]")  # characters that only a shell reads
_PROGRAM = "torchserve"


class Program(Enum):
    """The kinds of programs."""

    SERVE = auto()  # the server, configured by what the container holds
    TORCHSERVE = auto()  # the program `torchserve`
    OTHER = auto()


class EntryProgram(NamedTuple):
    """A program, and its words: of `OTHER` the first is the program itself."""

    program: Program
    words: list[str]


def read_words(words: Sequence[str]) -> EntryProgram:
    """Return the program that the words of a container mean."""
    if len(words) == 1 and any(map(str.isspace, words[0])):
        return _read_line(words[0])
    match list(words):
        case [] | ["serve"]:
            return EntryProgram(Program.SERVE, [])
        case ["serve", *rest]:
            return EntryProgram(Program.SERVE, rest)
        case [first, *rest] if first.rpartition("/")[2] == _PROGRAM:
            return EntryProgram(Program.TORCHSERVE, rest)
        case others:
            return EntryProgram(Program.OTHER, others)


def _read_line(line: str) -> EntryProgram:
    """Return the program of a whole line in one word; a shell runs a line that only a shell can read."""
    if not _SHELL.search(line):
        try:
            split = shlex.split(line)
        except ValueError:  # a quote that is not closed
            split = []
        entry = read_words(split) if len(split) > 1 else None
        if entry is not None and entry.program is not Program.OTHER:
            return entry
    return EntryProgram(Program.OTHER, ["/bin/sh", "-c", line])
