"""The one way to stdout and stderr, apart from render.py's consoles and top's screen, which use `shown` and `clean`.

Texts of handlers, clients and files are foreign: a terminal would obey their control characters, and show a line in
another order by Unicode's controls of direction. Such a character is written as its escape, `\\x1b`, wherever people
read: on a terminal, and on stderr. Data for a file or a pipe stays unchanged.

Characters that the encoding of a locale lacks are replaced by plain ones, and nothing fails.
"""

import codecs
import errno
import re
import sys
from collections.abc import Iterable
from typing import Any

import click

HANDLER = "tsctl"  # the name of the error handler of an encoding
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of a write: the file behind stdout cannot grow

_PLAIN = {
    "→": "->", "≤": "<=", "≥": ">=", "×": "x", "÷": "/", "·": "-", "…": "...", "–": "-", "—": "-", "±": "+-",
    "━": "=", "─": "-", "│": "|", "└": "+", "╸": "=", "╺": "=", "█": "#", "▌": "#", "▏": ".",
    "↑": "^", "↓": "v",
    "‘": "'", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
_BLOCKS = range(0x2580, 0x25A0)
_BRAILLE = range(0x2800, 0x2900)  # of a spinner


# C0 except tab and line feed, DEL, C1; controls of direction and lines; halves of characters.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")  # of the lines that many libraries log; no reader misses it


def shown(text: str) -> str:
    """Return a foreign text for a terminal: without colours, other control characters as escapes."""
    if _UNSAFE.search(text) is None:
        return text
    return _UNSAFE.sub(_escaped, _COLOUR.sub("", text.replace("\r\n", "\n")))


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def echo(text: str | bytes = "", *, before: str = "", err: bool = False, nl: bool = True) -> None:
    """Print a text to stdout or stderr; on a terminal, and on stderr, made safe by `shown`.

    Args:
        before: printed first, unchanged, such as a coloured word.
    """
    if err or sys.stdout.isatty():
        text = shown(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    if before:
        click.echo(before, nl=False, err=err)
    click.echo(text, nl=nl, err=err)


def echo_json(document: Any) -> None:
    """Print a document for programs."""
    import json

    echo(json.dumps(document, indent=2))


def write(pieces: Iterable[bytes]) -> None:
    """Write the pieces of an answer to stdout as they come: to a file or pipe these bytes, to a terminal their text."""
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        return
    decoder, ended = codecs.getincrementaldecoder("utf-8")("replace"), False
    for piece in pieces:
        text = decoder.decode(piece)
        echo(text, nl=False)
        ended = text.endswith("\n") if text else ended
    rest = decoder.decode(b"", final=True)
    if rest or not ended:
        echo(rest)


def plain(character: str) -> str:
    """Return ASCII text for a character: for a drawing a similar one, for a letter its escape sequence."""
    if character in _PLAIN:
        return _PLAIN[character]
    code = ord(character)
    if code in _BLOCKS:
        return "#"
    if code in _BRAILLE:
        return "*"
    return character.encode("ascii", "backslashreplace").decode("ascii")


def replace(error: UnicodeError) -> tuple[str, int]:
    """Replace the characters that an encoding lacks: an error handler for `codecs.register_error`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(plain, error.object[error.start : error.end])), error.end


def prepare() -> None:
    """Let stdout and stderr replace characters that their encoding lacks: in UTF-8, halves of characters."""
    codecs.register_error(HANDLER, replace)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)
