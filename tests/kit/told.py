"""Claims that stand in text files, and are played and compared whole: `## the claim`, and then its lines.

What a claim has of its own (what is arranged, sent or asked) is written by hand; the rest by `python -m tests.lab
transcripts`. The packages that play them say what their lines mean.
"""

import os
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

import pytest

WRITES = "WRITE_TRANSCRIPTS" in os.environ
if WRITES and os.environ.get("CI"):
    raise pytest.UsageError(
        "WRITE_TRANSCRIPTS is set where CI is: a comparison that failed there would be written away. Write them on your"
        " machine, and read the diff."
    )


class Told(NamedTuple):
    """One claim of a file, with its lines."""

    file: Path
    title: str
    lines: list[str]

    def compare(self, made: list[str]) -> None:
        """Fail unless these are its lines; or put them into the file."""
        if not WRITES:
            assert made == self.lines, "\n".join(unified_diff(self.lines, made, lineterm="", n=9))
            return
        before, after = ("\n".join([f"## {self.title}", *lines, ""]) for lines in (self.lines, made))
        self.file.write_text(self.file.read_text().replace(before, after, 1))


def told_in(files: Iterable[Path]) -> pytest.MarkDecorator:
    """Return the mark of a test that has every claim of these files as its argument `told`."""
    return pytest.mark.parametrize("told", [*_parts(files)], ids=lambda told: f"{told.file.stem}: {told.title}")


def _parts(files: Iterable[Path]) -> Iterator[Told]:
    for file in sorted(files):
        before, *parts = f"\n{file.read_text()}".split("\n## ")
        claims = [Told(file, title, lines) for title, *lines in (part.rstrip("\n").splitlines() for part in parts)]
        if before.strip() or not claims or not all(claim.lines for claim in claims):  # nothing would fail
            raise pytest.UsageError(f"{file}: a claim is a line `## TITLE`, and lines of its own below it")
        yield from claims
