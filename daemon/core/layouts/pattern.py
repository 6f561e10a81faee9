"""The lines of a log by a pattern of log4j 2, as far as TorchServe's patterns go.

%d  %d{ISO8601}  %d{yyyy-MM-dd HH:mm:ss,SSS}     time, local; `%d{…}{UTC}` in UTC
%p  %level       %-5p, %5p: padded                level
%t  %thread                                       thread
%c  %logger      %c{1}: the last part             logger
%m  %msg  %message                                text
%n  at the end                                    line feed
%%                                                per cent
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

TORCHSERVE = "%d{ISO8601} [%-5p] %t %c - %m%n"
BARE = "%d{ISO8601} - %m%n"  # of the access log and of metrics

_CONVERSION = re.compile(r"%(?:(%)|(-?\d*)([a-zA-Z]+)((?:\{[^}]*\})*))")
_NAMED_DATES = {
    "": "yyyy-MM-dd HH:mm:ss,SSS",
    "DEFAULT": "yyyy-MM-dd HH:mm:ss,SSS",
    "ISO8601": "yyyy-MM-dd'T'HH:mm:ss,SSS",
    "ISO8601_BASIC": "yyyyMMdd'T'HHmmss,SSS",
    "ABSOLUTE": "HH:mm:ss,SSS",
}
_DATE_PART = re.compile(r"'([^']*)'|(([a-zA-Z])\3*)|([^a-zA-Z']+)")
_DATE_CODES = {"yyyy": "%Y", "MM": "%m", "MMM": "%b", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%f"}


class UnknownConversion(ValueError):
    """The pattern has a part that is not known; `part` is its text."""

    def __init__(self, part: str) -> None:
        super().__init__(f"`{part}` is not known")
        self.part = part


class Entry(NamedTuple):
    """The content of a line; `moment` in seconds since the epoch."""

    moment: float
    level: str
    thread: str
    logger: str
    text: str


Piece = Callable[[Entry], str]


class Layout:
    """Formats entries as a pattern says, without the last line feed.

    Raises:
        UnknownConversion: a part of the pattern is not known, or the pattern does not end with `%n`.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        if not pattern.endswith("%n"):
            raise UnknownConversion(pattern[-2:])
        self._pieces = _pieces(pattern.removesuffix("%n"))

    def __repr__(self) -> str:
        return f"<Layout {self.pattern}>"

    def line(self, entry: Entry) -> str:
        return "".join([piece(entry) for piece in self._pieces])


def _pieces(pattern: str) -> list[Piece]:
    pieces: list[Piece] = []
    end = 0
    for found in _CONVERSION.finditer(pattern):
        if found.start() > end:
            pieces.append(_literal(pattern[end : found.start()]))
        pieces.append(_literal("%") if found[1] else _conversion(found[0], found[2], found[3], found[4]))
        end = found.end()
    if "%" in pattern[end:]:
        raise UnknownConversion(pattern[end:])
    if pattern[end:]:
        pieces.append(_literal(pattern[end:]))
    return pieces


def _literal(text: str) -> Piece:
    return lambda entry: text


def _conversion(whole: str, width: str, name: str, options: str) -> Piece:
    given = re.findall(r"\{([^}]*)\}", options)
    match name, given:
        case (("d" | "date"), _):
            piece = _date(whole, given)
        case (("p" | "level"), []):
            piece = _level
        case (("t" | "thread"), []):
            piece = _thread
        case (("c" | "logger"), [] | ["1"]):
            piece = _last_part if given else _logger
        case (("m" | "msg" | "message"), []):
            piece = _text
        case _:
            raise UnknownConversion(whole)
    return _padded(piece, int(width)) if width not in ("", "-") else piece


def _level(entry: Entry) -> str:
    return entry.level


def _thread(entry: Entry) -> str:
    return entry.thread


def _logger(entry: Entry) -> str:
    return entry.logger


def _last_part(entry: Entry) -> str:
    return entry.logger.rpartition(".")[2]


def _text(entry: Entry) -> str:
    return entry.text


def _padded(piece: Piece, width: int) -> Piece:
    """Return the piece with spaces: before it, or after it for a negative width."""
    if width < 0:
        return lambda entry: piece(entry).ljust(-width)
    return lambda entry: piece(entry).rjust(width)


def _date(whole: str, given: list[str]) -> Piece:
    form, zone = (*given, "", "")[:2]
    if len(given) > 2 or zone not in ("", "UTC"):
        raise UnknownConversion(whole)
    before, milliseconds, after = _date_format(whole, _NAMED_DATES.get(form, form)).partition("%f")
    utc = UTC if zone else None

    second, head, tail = -1, "", ""

    def piece(entry: Entry) -> str:
        nonlocal second, head, tail
        now = int(entry.moment)
        if now != second:  # once a second: it costs more than the rest of the line
            moment = datetime.fromtimestamp(now, utc)
            second, head, tail = now, moment.strftime(before), moment.strftime(after)
        return f"{head}{int((entry.moment - now) * 1000):03}{tail}" if milliseconds else head

    return piece


def _date_format(whole: str, form: str) -> str:
    """Return Java's form of a date as that of strftime, in which `%f` stands for milliseconds."""
    made = []
    for literal, letters, _, other in _DATE_PART.findall(form):
        if letters and letters not in _DATE_CODES:
            raise UnknownConversion(whole)
        made.append(_DATE_CODES[letters] if letters else (literal or other).replace("%", "%%"))
    return "".join(made)
