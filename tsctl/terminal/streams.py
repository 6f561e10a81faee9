"""Output in a locale whose encoding lacks some characters: plain ones take their place, and nothing fails."""

import codecs
import sys

HANDLER = "tsctl"  # the name of the error handler of an encoding

_PLAIN = {
    "→": "->", "≤": "<=", "≥": ">=", "×": "x", "÷": "/", "·": "-", "…": "...", "–": "-", "—": "-", "±": "+-",
    "━": "=", "─": "-", "│": "|", "└": "+", "╸": "=", "╺": "=", "█": "#", "▌": "#", "▏": ".",
    "↑": "^", "↓": "v",
    "‘": "'", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
_BLOCKS = range(0x2580, 0x25A0)
_BRAILLE = range(0x2800, 0x2900)  # of a spinner


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
    """Let stdout and stderr replace characters that their encoding lacks."""
    codecs.register_error(HANDLER, replace)
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
        if encoding not in ("utf-8", "utf8") and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=HANDLER)
