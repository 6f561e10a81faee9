"""The models as lines: one row each; columns go where they do not fit, and names are cut last."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tsctl import render
from tsctl.extension import Styled, TopColumn, extensions
from tsctl.extensions.live.columns import (
    Line,
    ScreenSize,
    clean,
    flowing,
    left,
    middle,
    right,
    short,
    sparkline,
    width,
    within,
)
from tsctl.extensions.live.event_lines import block_rows, event_block
from tsctl.extensions.live.figures import Document, ModelFigures, cards_of, share_text
from tsctl.extensions.live.past_rates import Past
from tsctl.extensions.live.view import View, next_order, ordered, selected_index
from tsctl.gpu_text import held_text
from tsctl.trouble import STYLE, beside_state, troubles_of

_GAP = 2
_LEAST_SPARK, _MOST_SPARK = 8, 60
_MOST_TOLD = 24  # columns of a state or a trouble that a name makes room for: most in full
_ACTIVITY = "ACTIVITY"
_SHARE = "SHARE"
_GPU, _GPU_WIDTH = "GPU", 9
_LEAST_NAME = 12
_KEPT = ("READY", "REQ/S")  # columns of numbers that stay before names are cut
_LEAST_ROWS = 4  # of models, before events have room


def _held_on(held: Mapping[str, int | None]) -> str:
    """Return the numbers of a version's GPUs, and what its workers hold there, `0-3 61G`; too long, how many."""
    text = held_text(held, render.short_bytes)
    return text if width(text) <= _GPU_WIDTH else f"{len(held)} GPUs"


class Column(NamedTuple):
    """A column of numbers: its title, its width, its text."""

    title: str
    width: int
    text: Callable[[ModelFigures], str]


COLUMNS = (
    Column("READY", 5, lambda each: f"{each.now['ready']}/{each.now['wanted']}"),
    Column("REQ/S", 5, lambda each: short(each.per_second)),
    Column(_SHARE, 6, lambda each: share_text(each.now)),
    Column("ERR/S", 5, lambda each: short(each.errors)),
    Column("P50 ms", 6, lambda each: short(each.p50)),
    Column("P99 ms", 6, lambda each: short(each.p99)),
    Column("BATCH", 5, lambda each: short(each.batch)),
    Column("QUEUE", 5, lambda each: short(each.now["queued"])),
    Column("CPU", 4, lambda each: short(each.cpu)),
    Column("MEM", 5, lambda each: render.short_bytes(each.memory)),
    Column(_GPU, _GPU_WIDTH, lambda each: _held_on(each.now.get("gpuMemory", {}))),
)
# Left out in this order where a terminal is narrow; the activity, which shrinks first, goes between these.
_DROPPED = ("CPU", "P50 ms", "MEM", _GPU, "BATCH", _ACTIVITY, _SHARE, "QUEUE", "P99 ms", "ERR/S", "READY", "REQ/S")


def screen(past: Past, view: View, size: ScreenSize, events: Sequence[Document] = (), absent: str = "") -> list[Line]:
    """Return the lines of the screen, as many as it has rows, none wider than it has columns.

    Args:
        events: the latest ones of the daemon, the oldest first.
        absent: why the daemon does not answer; empty while it does.
    """
    models = ordered(past.figures(), view.order)
    top = head(past.latest, models, size.columns, absent)
    room = max(2, size.rows - len(top) - 1)
    below = event_block(events, size.columns, block_rows(len(events), room, max(_LEAST_ROWS, 1 + len(models))))
    rows = _rows(past, models, view, size.columns, room - len(below))
    free = max(0, room - len(rows) - len(below))
    keys = f"↑↓ select   Enter show   s sort by {next_order(view.order)}   q quit"
    lines = [*top, *rows, *([[]] * free), *below, [Styled(keys, "dim")]]
    return [within(line, size.columns) for line in lines][: size.rows]


def once(past: Past, columns: int) -> list[Line]:
    """Return the table of all models, for a pipe or a terminal that cannot be drawn on; nothing is selected."""
    models = ordered(past.figures(), View().order)
    kept, state = _fit(models, columns)
    name = _name_width(models, columns)
    lines = [[*_titles(kept, name, 0), Styled("  STATE", "bold")] if state else _titles(kept, name, 0)]
    for each in models:
        line = _row(each, kept, name)
        lines.append([*line, Styled("  "), state_of(each)] if state else line)
    lines += [[Styled(text)] for text in cards_of(past.latest, models)]
    return [within(line, columns) for line in lines]


def head(latest: Document | None, models: Sequence[ModelFigures], columns: int, absent: str) -> list[Line]:
    """Return the lines about the daemon, and an empty one."""
    if latest is None:
        return [[Styled(absent or "asking the daemon …", "bold")], []]
    clock = time.strftime("%H:%M:%S", time.localtime(latest["time"]))
    up = render.duration_text(latest.get("upSeconds", latest["time"] - latest["started"]))  # not of a daemon of before
    first: Line = [Styled(f"No answer since {clock}: {absent}", "bold red")]
    if not absent:
        about = f"tsctl {latest['version']} · pid {latest['pid']} · up {up}"
        first = [Styled(about, "bold")]
        if columns > width(about) + len(clock):
            first.append(Styled(right(clock, columns - width(about))))
    cpu = [each.cpu for each in models if each.cpu is not None]
    ready = sum(each.now["state"] == "ready" for each in models)
    facts = [
        f"{len(models)} model{'' if len(models) == 1 else 's'}, {ready} ready",
        f"{short(sum(each.per_second for each in models))} requests/s",
        f"{short(sum(each.errors for each in models))} errors/s",
        f"{sum(each.now['queued'] for each in models)} queued",
        f"{short(sum(cpu))} CPUs" if cpu else "",
        f"{render.short_bytes(sum(each.memory for each in models))} memory",
        *cards_of(latest, models),
        *(fact for each in extensions() for fact in each.overview(latest)),
    ]
    return [first, *flowing(facts, columns, 3), []]


def _rows(past: Past, models: list[ModelFigures], view: View, columns: int, room: int) -> list[Line]:
    if not models:
        text = "No model is registered: `tsctl register MODEL.mar`" if past.latest is not None else ""
        return [[Styled(text, "dim")]]
    kept, activity = _fit(models, columns - _GAP)
    name = _name_width(models, columns - _GAP)
    at, room = selected_index(view, models), max(1, room - 1)
    start = min(max(0, at - room // 2), max(0, len(models) - room))
    shown = models[start : start + room]
    position = f"{start + 1}-{start + len(shown)} of {len(models)}" if len(shown) < len(models) else ""
    rows = [[Styled("  "), *_titles(kept, name, activity, position)]]
    for index, each in enumerate(shown, start):
        first, *others = _row(each, kept, name)
        if activity:
            others += [Styled(" " * _GAP), *activity_of(each, past.pace(each.key), activity)]
        marked = index == at
        rows.append([Styled("> " if marked else "  "), first._replace(style="reverse" if marked else ""), *others])
    return rows


def _name_width(models: Sequence[ModelFigures], columns: int) -> int:
    """Return the columns for the names: the longest is whole, where that leaves room for the rest."""
    longest = max([width("MODEL"), *(width(each.label) for each in models)])
    beside = sum(column.width + _GAP for column in COLUMNS if column.title in _KEPT) + _state_width(models)
    return min(longest, max(_LEAST_NAME, columns - beside))


def _state_width(models: Sequence[ModelFigures]) -> int:
    """Return the columns of the activity that stay on any terminal: those of a state that must be seen, or none."""
    words = [each.now["state"] if each.now["state"] != "ready" else beside_state(each.now) for each in models]
    most = max([min(width(each), _MOST_TOLD) for each in words if each], default=0)
    return max(_LEAST_SPARK, most) + _GAP if most else 0


def _fit(models: Sequence[ModelFigures], columns: int) -> tuple[list[Column], int]:
    """Return the columns that fit beside the longest name, and the columns of a terminal that the activity has."""
    name = _name_width(models, columns)
    useless = set() if any("share" in each.now for each in models) else {_SHARE}
    useless |= set() if any(each.now.get("gpuMemory") for each in models) else {_GPU}
    kept, spark = [column for column in COLUMNS if column.title not in useless], _LEAST_SPARK + _GAP
    dropped, needed = list(_DROPPED), _state_width(models)
    if needed:
        spark = needed
        dropped.remove(_ACTIVITY)
    for added in (column for each in extensions() for column in each.columns):
        if any(added.used(each.now) for each in models):
            at = [column.title for column in kept].index(added.beside)
            kept.insert(at + 1, _column(added))
            dropped.insert(dropped.index(added.outlives) + 1, added.title)
    for title in dropped:
        if name + sum(column.width + _GAP for column in kept) + spark <= columns:
            break
        if title == _ACTIVITY:
            spark = 0
        kept = [column for column in kept if column.title != title]
    free = columns - name - sum(column.width + _GAP for column in kept) - _GAP
    return kept, min(free, _MOST_SPARK) if spark else 0


def _column(added: TopColumn) -> Column:
    return Column(added.title, added.width, lambda each: added.text(each.now))


def _titles(kept: Sequence[Column], name: int, activity: int, position: str = "") -> Line:
    parts = [Styled(left("MODEL", name), "bold")]
    parts += [Styled(" " * _GAP + right(column.title, column.width), "bold") for column in kept]
    if activity:
        parts.append(Styled(" " * _GAP + left(position or _ACTIVITY, activity), "bold"))
    return parts


def _row(each: ModelFigures, kept: Sequence[Column], name: int) -> Line:
    parts = [Styled(middle(each.label, name), STYLE if troubles_of(each.now) else "")]
    for column in kept:
        style = "red" if column.title == "ERR/S" and each.errors else ""
        if column.title == "READY" and each.now["ready"] < each.now["wanted"]:
            style = "yellow"
        parts.append(Styled(" " * _GAP + right(column.text(each), column.width), style))
    return parts


def activity_of(each: ModelFigures, pace: Sequence[float], columns: int) -> Line:
    """Return a ready model's troubles and sparkline; of any other the state, and why if that fits."""
    if each.now["state"] == "ready":
        told = beside_state(each.now)
        room = columns - width(told) - _GAP
        if told and room < _LEAST_SPARK:
            return [Styled(left(told, columns), STYLE)]
        return [
            *([Styled(told + " " * _GAP, STYLE)] if told else []),
            Styled(sparkline(pace, room if told else columns), "cyan"),
        ]
    state = state_of(each)
    least = width(each.now["state"]) + _LEAST_SPARK  # with a beginning of the reason that says something
    if width(state.text) > columns and (_absence(each) or columns < least):
        state = state._replace(text=each.now["state"])  # without the reason the state is whole
    return [Styled(left(state.text, columns), state.style)]


def state_of(each: ModelFigures) -> Styled:
    """Return the state of a model with its troubles, and, unless it is ready, why."""
    state, told = each.now["state"], beside_state(each.now)
    if state == "ready":
        return Styled(f"{state}, {told}", STYLE) if told else Styled(state, render.state_style(state))
    why = _absence(each) or each.now["lastError"]
    return Styled(f"{state}: {clean(why)}" if why else state, render.state_style(state))


def _absence(each: ModelFigures) -> str:
    """Return why a model has no workers, as an extension knows; empty if none does."""
    return next((why for extension in extensions() if (why := extension.absence(each.now))), "")
