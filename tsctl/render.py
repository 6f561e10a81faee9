"""Terminal output: tables, live progress, drawings. Only showcase/ and top/ import rich, too."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, Literal

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from tsctl.streams import shown

_ROOM = 4  # columns


class _SafeConsole(Console):
    """Writes control characters of foreign texts to a terminal as escapes, whichever way they came (see streams.py)."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        segments = super().render(renderable, options)
        return map(_safe, segments) if self.is_terminal else segments


def _safe(segment: Segment) -> Segment:
    text = segment.text if segment.control else shown(segment.text)
    return segment if text == segment.text else Segment(text, segment.style)


class _LiveConsole(_SafeConsole):
    """Leaves room at the end of each line: else the terminal's own `^C` would wrap the live line, which then stays."""

    @property
    def options(self) -> ConsoleOptions:
        return super().options.update_width(max(1, self.width - _ROOM))


# A pipe has no width, so no text is cut to fit.
out = _SafeConsole(highlight=False, width=None if sys.stdout.isatty() else 10_000)
err = _LiveConsole(stderr=True, highlight=False)

_STATE_STYLES = {
    "ready": "green", "loading": "yellow", "crashing": "red", "failed": "red",
    "stopping": "yellow", "no workers": "dim", "unloaded": "dim",
}  # fmt: skip
_VERDICT_STYLES = {"ok": "green", "warning": "yellow", "problem": "red"}
_BAR = 40  # columns of a histogram's longest bar
_SHORT_BAR = 12
_GAP = 2  # between the columns of a table
_LEAST_HANGING = 2  # times its indent: a narrower terminal has no indent


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], drop: Sequence[str] = ()) -> None:
    """Print a table without lines; a column whose name starts with `>` is aligned right.

    Args:
        drop: names of columns that a narrow terminal does without, the first of them first. What stays is wrapped
            where it still does not fit, and never cut.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    names = [column.removeprefix(">") for column in columns]
    widths = [max(len(name), *(row[index].cell_len for row in cells), 0) for index, name in enumerate(names)]
    kept = list(range(len(names)))

    def fits() -> bool:
        return sum(widths[index] + _GAP for index in kept) - _GAP <= out.width

    for name in drop:
        if fits():
            break
        kept = [index for index in kept if names[index] != name]
    whole = fits() and not any("\n" in cell.plain or "\t" in cell.plain for row in cells for cell in row)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for index in kept:
        justify: Literal["left", "right"] = "right" if columns[index].startswith(">") else "left"
        grid.add_column(names[index], justify=justify, overflow="fold", no_wrap=whole)
    if whole and cells:  # one row with a line for each: rich draws the same in a third of the time
        cells = [[Text("\n").join(column) for column in zip(*cells, strict=True)]]
    for row in cells:
        grid.add_row(*(row[index] for index in kept))
    _print_grid(grid)


def _print_grid(grid: Table) -> None:
    """Print a grid without the spaces that fill its last column: one long error would make every line as long."""
    printed = []
    for line in out.render_lines(grid, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            line[-1] = line[-1]._replace(text=line[-1].text.rstrip())
        printed += [*line, Segment.line()]
    out.print(Segments(printed), crop=False, end="")


def state(word: str) -> Text:
    """Return a model's state in its colour; the colour adds no information."""
    return Text(word, style=state_style(word))


def named(name: str, style: str) -> Text:
    """Return a name in a style, which adds no information."""
    return Text(_foreign(name).plain, style=style)


def state_style(word: str) -> str:
    return _STATE_STYLES.get(word, "")


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, one a line; what has no value is left out."""
    grid = Table(box=None, pad_edge=False, show_header=False)
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            grid.add_row(name, _cell(value))
    _print_grid(grid)


def verdicts(rows: Iterable[tuple[str, str, str, str]]) -> None:
    """Print a name, a state and a text a line; below, the remedy if there is one."""
    grid = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(2):
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, word, text, remedy in rows:
        grid.add_row(_cell(name), Text(word, style=_VERDICT_STYLES.get(word, "")), _cell(text))
        if remedy:
            grid.add_row("", "", Text(f"→ {remedy}", style="bold"))
    _print_grid(grid)


def heading(text: str) -> None:
    out.print(Text.assemble("\n", (text, "bold")))


def plain(text: str) -> None:
    """Print text verbatim: no markup, no wrapping."""
    out.print(_foreign(text), soft_wrap=True)


def cut(line: str, coloured: slice = slice(0), style: str = "") -> bool:
    """Print a line; on a terminal, as much as fits into its width, with `…` for the rest.

    Args:
        coloured: the characters that get the style.

    Returns:
        Whether there is a rest.
    """
    text = _foreign(line)
    text.stylize(style, coloured.start or 0, coloured.stop)
    rest = out.is_terminal and text.cell_len > out.width
    if rest:
        text.truncate(out.width, overflow="ellipsis")
    out.print(text, soft_wrap=True)
    return rest


def hanging(line: str, columns: int, coloured: slice = slice(0), style: str = "") -> None:
    """Print a line verbatim; where it is wider than a terminal, its further lines begin at this column.

    Args:
        coloured: the characters that get the style.
    """
    text = _foreign(line)
    text.stylize(style, coloured.start or 0, coloured.stop)
    if text.cell_len <= out.width or out.width < _LEAST_HANGING * columns:
        out.print(text, soft_wrap=True)
        return
    for index, part in enumerate(text[columns:].wrap(out, out.width - columns)):
        out.print(Text.assemble(" " * columns if index else text[:columns], part), soft_wrap=True)


def note(text: str) -> None:
    """Print a caveat to stderr, broken between words on a terminal."""
    err.print(Text.assemble(("note:", "yellow"), f" {shown(text)}"), soft_wrap=not err.is_terminal)


def histogram(counts: Sequence[tuple[str, int]], notes: Sequence[str] = ()) -> None:
    """Draw a bar for each label, as long as its count; with notes the bars are shorter, followed by each note.

    On a narrow terminal, the longest bar has the room that labels and counts leave.
    """
    most = max((count for _, count in counts), default=0)
    beside = sum(max((len(str(pair[index])) for pair in counts), default=0) + _GAP for index in (0, 1))
    longest = max(1, min(_SHORT_BAR if notes else _BAR, out.width - beside))
    grid = Table(box=None, pad_edge=False, show_header=False)
    grid.add_column(justify="right")
    grid.add_column()
    grid.add_column(justify="right")
    if notes:
        grid.add_column(style="dim")
    for (label, count), note in zip(counts, notes or [""] * len(counts), strict=True):
        length = count / most * longest if most else 0
        bar = "█" * int(length) + ("▌" if length % 1 >= 0.5 else "")
        drawn = Text(bar or ("▏" if count else ""), style="cyan")
        grid.add_row(*map(_cell, (label, drawn, count, note)[: len(grid.columns)]))
    out.print(grid)


def _cell(value: Any) -> Text:
    """Return a cell; `[b]` in a path is not markup."""
    return value if isinstance(value, Text) else _foreign(str(value))


def _foreign(text: str) -> Text:
    """Return a text of somebody else, with the escapes that it will have on a terminal, so that its width is known."""
    return Text(shown(text) if out.is_terminal else text)


def bytes_text(count: float) -> str:
    """Format a number of bytes with a binary unit, `1.5 KiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def short_bytes(count: float) -> str:
    """Return a number of bytes in at most five columns, with binary units: `1.5G`."""
    for unit in ("B", "K", "M", "G"):
        if count < 999.5:
            return f"{count:.0f}{unit}" if count >= 9.95 or unit == "B" or not count else f"{count:.1f}{unit}"
        count /= 1024
    return f"{count:.1f}T"


def number_text(value: float) -> str:
    """Format a number with about three significant digits and no exponent."""
    if value >= 99.95 or value == 0:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.995 else f"{value:.2g}" if value >= 0.001 else "0"


def best_size_text(learned: dict[str, Any], source: str = "learned") -> str:
    """Return the size of batches that `auto` has chosen, and why; empty while no other size is known.

    Args:
        learned: `bestSize` and `sizes` of a version's document.
        source: told behind it.
    """
    best = learned.get("bestSize")
    costs = {each["size"]: each["requestMs"] for each in learned.get("sizes", ())}
    if best not in costs or len(costs) < 2:
        return ""
    other = max(costs) if max(costs) > best else min(costs)
    here, there, larger = costs[best], costs[other], max(best, other)
    if other == 1 or (best == 1 and there >= 0.95 * here):
        ratio = larger * costs[larger] / costs[1]
        requests = f"{ratio:{'.2g' if ratio < 9.95 else '.0f'}}"
        found = f"a batch of {larger} takes as long as {requests} request{'s' * (requests != '1')}"
    else:
        found = f"{number_text(here)} ms a request in batches of {best}, {number_text(there)} ms in batches of {other}"
    return f"{best}: {found} ({source})"


def batching_text(
    policy: str, size: int, delay: float, mode: str | None = None, places: int | None = None, origin: str = ""
) -> str:
    """Describe how a version's requests are sent to its workers.

    Args:
        delay: milliseconds.
        origin: of the batch size; told where the kind of handler decided.
    """
    if mode in (None, "batch"):
        of = f" ({origin})" if origin.startswith("default for") else ""
        return f"{policy}, at most {size} request{'' if size == 1 else 's'}{of}, {delay:g} ms delay"
    return f"{mode}, {'' if places is None else f'at most {places} '}requests on their own in a worker"


def duration_text(seconds: float) -> str:
    """Format a duration in seconds with its two largest units."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [
        f"{value} {unit}" for value, unit in ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")) if value
    ]
    return " ".join(parts[:2]) or "0 s"


class LiveProgress:
    """One live line: the current activity, a bar, and the elapsed time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def show(self, text: str, done: float = 0, total: float | None = None) -> None:
        self._progress.update(self._task, description=text, completed=done, total=total)

    def tick(self) -> None:
        self._progress.refresh()

    def print(self, text: str) -> None:
        """Print lines to stderr, above the live line if there is one; may be called from any thread."""
        self._progress.console.print(Text(shown(text)), soft_wrap=True)


@contextmanager
def live() -> Iterator[LiveProgress]:
    """Show progress on stderr within the block, if that is a terminal, and erase it afterwards."""
    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), text, BarColumn(bar_width=30), TimeElapsedColumn())
    progress = Progress(*columns, console=err, transient=True, get_time=time.monotonic)
    with progress if err.is_terminal else nullcontext():  # rich 14.0 prints an empty line at the end of a hidden one
        yield LiveProgress(progress)
