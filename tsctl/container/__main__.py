"""`python -m tsctl.container WORDS`: the entry point of the image."""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from tsctl.streams import echo

_SHELL = re.compile(r"[;&|<>$`(){}*?\n]")  # characters that only a shell reads
_PROGRAM = "torchserve"


class Program(Enum):
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


def main(words: Sequence[str]) -> None:
    entry = read_words(words)
    if entry.program is Program.OTHER:
        _become(entry.words)
    from tsctl.container.torchserve import torchserve

    torchserve(entry.words, prog_name="torchserve", obj=entry.program is Program.SERVE)


def _become(words: Sequence[str]) -> None:
    """Replace this process by another program; the exit codes are those of a shell."""
    try:
        os.execvp(words[0], list(words))
    except OSError as error:
        echo(f"error: cannot run `{words[0]}`: {error.strerror}", err=True)
        echo("hint: `serve` and `torchserve --start …` start the server", err=True)
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
