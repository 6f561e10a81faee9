"""The commands that Markdown pages document, as the words that a shell would pass."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PLACEHOLDER = re.compile(r"<[^<>\n]*>|\{[^{}\n]*\}")
_CONTINUED = re.compile(r"[ \t]*\\[ \t]*\n[ \t]*")
_END = re.compile(r"&&?|\|\|?|;|[12]?>.*|#.*|-")


class Documented(NamedTuple):
    """A command on a page: the page, the line, and the words after the program's name."""

    page: Path
    line: int
    words: tuple[str, ...]


def commands(page: Path, program: str) -> Iterator[Documented]:
    """Yield the page's commands of a program: from its name to the end of the line, or of the code span.

    A placeholder such as `<model store>` becomes one word. A line that no shell could read is left out.
    """
    text = page.read_text(errors="replace")
    for match in re.finditer(rf"(?<![\w/.-]){re.escape(program)}(?:\.exe)?[ \t]+(?=-)", text):
        rest = _CONTINUED.sub(" ", text[match.end() : match.end() + 2000]).partition("\n")[0].partition("`")[0]
        words = _words(_PLACEHOLDER.sub("PLACEHOLDER", rest))
        if words:
            yield Documented(page, text.count("\n", 0, match.start()) + 1, words)


def _words(text: str) -> tuple[str, ...]:
    try:
        split = shlex.split(text)
    except ValueError:  # a quotation mark of the prose
        return ()
    words: list[str] = []
    for word in split:
        if _END.fullmatch(word):
            break
        words.append(word)
        if word.endswith(";"):
            words[-1] = word[:-1]
            break
    return tuple(words)
