"""Text in a number of columns: lines of styled parts, short numbers, sparklines."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len, set_cell_size

from tsctl.extension import Styled

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")  # of ECMA-48, such as a colour
_SPARKS = "▁▂▃▄▅▆▇█"


Line = list[Styled]


class ScreenSize(NamedTuple):
    columns: int
    rows: int


def width(text: str) -> int:
    return cell_len(text)


def clean(text: str) -> str:
    """Return the first line of a text from a handler or a client, without what a terminal would obey."""
    if text.isprintable():
        return text
    line = _SEQUENCE.sub("", text.partition("\n")[0])
    return "".join(each if each.isprintable() else " " for each in line)


def left(text: str, columns: int) -> str:
    """Return a text at the left of so many columns, with an ellipsis if it does not fit."""
    text = clean(text)
    if width(text) > columns:
        return set_cell_size(text, max(0, columns - 1)) + "…" if columns > 0 else ""
    return set_cell_size(text, columns)


def middle(text: str, columns: int) -> str:
    """Return a name at the left of so many columns; one that does not fit keeps its beginning and its end."""
    text = clean(text)
    if width(text) <= columns or columns < 3:
        return left(text, columns)
    head = set_cell_size(text, columns // 2).rstrip()
    tail, room = "", columns - width(head) - 1
    for each in reversed(text):
        if width(each + tail) > room:
            break
        tail = each + tail
    return set_cell_size(f"{head}…{tail}", columns)


def right(text: str, columns: int) -> str:
    """Return a text at the right of so many columns."""
    text = clean(text)
    return " " * max(0, columns - width(text)) + text


def within(line: Line, columns: int) -> Line:
    """Return the parts of a line that fit, the last one cut."""
    kept: Line = []
    for part in line:
        room = columns - sum(width(each.text) for each in kept)
        if width(part.text) > room:
            kept.append(Styled(left(part.text, room), part.style))
            break
        kept.append(part)
    return kept


def flowing(facts: Sequence[str], columns: int, most: int, between: str = " · ") -> list[Line]:
    """Return facts with dots or another text between them, in at most so many lines; the last one is cut if need be."""
    lines = [""]
    for fact in filter(None, facts):
        longer = f"{lines[-1]}{between}{fact}" if lines[-1] else fact
        if width(longer) > columns and lines[-1] and len(lines) < most:
            lines.append(fact)
        else:
            lines[-1] = longer
    return [within([Styled(line)], columns) for line in lines]


def text_of(line: Line) -> str:
    """Return the line without its styles, and without spaces at its end."""
    return "".join(part.text for part in line).rstrip()


def sparkline(values: Sequence[float], columns: int) -> str:
    """Return the latest values as blocks, the highest one as the highest block; a value of 0 is empty."""
    shown = values[-columns:] if columns > 0 else ()
    most = max(shown, default=0.0)
    steps = len(_SPARKS) - 1
    drawn = "".join(_SPARKS[round(value / most * steps)] if value > 0 else " " for value in shown)
    return drawn.rjust(columns)


def bar(value: float, most: float, columns: int) -> str:
    """Return a bar whose length is the share of `value` in `most`; its rest is dotted."""
    filled = min(columns, round(value / most * columns)) if most else 0
    filled = max(filled, 1) if value else 0
    return "█" * filled + "·" * (columns - filled)


def short(value: float | None) -> str:
    """Return a number in at most five columns, `-` for none."""
    if value is None:
        return "-"
    if value < 9.95 and isinstance(value, int):
        return str(value)
    if value == 0:
        return "0"
    if value < 9.95:
        return f"{value:.2f}" if value < 0.995 else f"{value:.1f}"
    if value < 99_999.5:
        return f"{value:.0f}"
    return f"{value / 1e6:.1f}M" if value < 999.5e6 else f"{value / 1e9:.0f}G"
