"""Events and batches as lines."""

import time
from collections.abc import Sequence

from tsctl.extension import Styled
from tsctl.extensions.live.columns import Line, bar, clean, left, middle, right, short, width, within
from tsctl.extensions.live.figures import Document

_STYLES = {"warning": "yellow", "error": "red"}
_TITLE_ROWS = 2  # an empty one and the title
_RESERVED = 2  # events that are shown although there are more models than rows
_MOST = 10
_BAR = 16
_WIDE = 120  # columns, with which the reason of a batch is told in words, else in one


def block_rows(events: int, room: int, above: int) -> int:
    """Return how many of `room` rows are for events and their title, where other lines would like `above` rows."""
    free = max(room - above, _RESERVED + _TITLE_ROWS if room >= 12 else 0)
    return min(events + _TITLE_ROWS, free, _MOST) if events and free > _TITLE_ROWS else 0


def event_block(events: Sequence[Document], columns: int, rows: int, *, named: bool = True) -> list[Line]:
    """Return an empty line, a title, and the latest events, in so many rows.

    Args:
        named: name each event's model.
    """
    if rows <= _TITLE_ROWS:
        return []
    latest = events[-(rows - _TITLE_ROWS) :]
    return [[], [Styled("EVENTS", "bold")], *(event_line(each, columns, named=named) for each in latest)]


def event_line(event: Document, columns: int, *, named: bool) -> Line:
    """Return an event as a line: time, level, text; with the day where an event is not named, and may be of any day."""
    stamp = time.strftime("%H:%M:%S" if named else "%m-%d %H:%M:%S", time.localtime(event["time"]))
    about = "/".join(filter(None, (event["model"], event["version"]))) if named else ""
    if width(about) > columns // 3:
        about = middle(about, columns // 3)  # the text says more than the middle of the name
    level, text = event["level"], clean(event["text"])
    style = _STYLES.get(level, "")
    return within(
        [Styled(f"{stamp}  "), Styled(left(level, 7), style), Styled(f"  {about}: {text}" if about else f"  {text}")],
        columns,
    )


def batch_lines(batches: Sequence[Document], columns: int, rows: int) -> list[Line]:
    """Return a title and the latest batches in so many rows, the newest first."""
    if rows < 1:
        return []
    length = _BAR if columns >= 76 else 0
    title = f"{'BATCHES':12}  {'SIZE':>7}  {'':{length}}{'  ' if length else ''}{'WAITED':>9}  {'TOOK':>9}  REASON"
    lines: list[Line] = [within([Styled(title, "bold")], columns)]
    if not batches:
        return [*lines, [Styled("none yet", "dim")]][:rows]
    reason = "meaning" if columns >= _WIDE else "reason"
    latest = list(reversed(batches))[: rows - 1]
    return [*lines, *(within(_batch_line(each, length, each[reason]), columns) for each in latest)]


def _batch_line(each: Document, length: int, reason: str) -> Line:
    moment = each["time"]
    stamp = time.strftime("%H:%M:%S", time.localtime(moment)) + f"{moment % 1:.3f}"[1:]
    if moment % 1 >= 0.9995:  # would be rounded up to the next second
        stamp = stamp[:8] + ".999"
    failed = f"{each['failed']} failed: " if each["failed"] else ""
    took = "no answer" if each["tookMs"] is None else f"{short(each['tookMs'])} ms"
    drawn = Styled(f"{bar(each['size'], each['limit'], length)}  " if length else "", "cyan")
    return [
        Styled(f"{stamp}  {each['size']:>3}/{each['limit']:<3}  "),
        drawn,
        Styled(f"{right(short(each['waitedMs']) + ' ms', 9)}  {right(took, 9)}  "),
        Styled(failed, "red"),
        Styled(reason),
    ]
