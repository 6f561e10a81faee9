"""What a person sees on a terminal: tables, live progress, drawings. The only module that imports rich."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

# A pipe has no width: nothing is cut to fit one.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 10_000)
err = Console(stderr=True, highlight=False)

_STATE_STYLES = {
    "ready": "green", "loading": "yellow", "crashing": "red", "failed": "red",
    "stopping": "yellow", "no workers": "dim",
}  # fmt: skip
_BAR = 40  # columns of a histogram's longest bar
_SHORT_BAR = 12


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table without lines; a column whose name starts with `>` is aligned right."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    for row in rows:
        grid.add_row(*map(_cell, row))
    out.print(grid)


def state(word: str) -> Text:
    """A model's state, in its colour; the word alone says it all."""
    return Text(word, style=_STATE_STYLES.get(word, ""))


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, one a line."""
    grid = Table(box=None, pad_edge=False, show_header=False)
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, _cell(value))
    out.print(grid)


def heading(text: str) -> None:
    out.print(f"\n[bold]{text}[/bold]")


def plain(text: str) -> None:
    """Print text as it is: no markup, no wrapping."""
    out.print(Text(text), soft_wrap=True)


def histogram(counts: Sequence[tuple[str, int]], notes: Sequence[str] = ()) -> None:
    """Draw a bar for each label, as long as its count; with notes shorter ones, and what each means."""
    most = max((count for _, count in counts), default=0)
    longest = _SHORT_BAR if notes else _BAR
    grid = Table(box=None, pad_edge=False, show_header=False)
    grid.add_column(justify="right")
    grid.add_column()
    grid.add_column(justify="right")
    grid.add_column(style="dim")
    for (label, count), note in zip(counts, notes or [""] * len(counts), strict=True):
        length = count / most * longest if most else 0
        bar = "█" * int(length) + ("▌" if length % 1 >= 0.5 else "")
        drawn = Text(bar or ("▏" if count else ""), style="cyan")
        grid.add_row(*map(_cell, (label, drawn, count, note)))
    out.print(grid)


def _cell(value: Any) -> Text:
    """Make a cell; a path may hold `[b]`, and that is no markup."""
    return value if isinstance(value, Text) else Text(str(value))


def bytes_text(count: float) -> str:
    """Write a number of bytes as people do."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def number_text(value: float) -> str:
    """Write a number with about three digits that count, and no exponent."""
    if value >= 99.95 or value == 0:
        return f"{value:.0f}"
    if value >= 9.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.995 else f"{value:.2g}" if value >= 0.001 else "0"


def duration_text(seconds: float) -> str:
    """Write a duration with its two largest units."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [
        f"{value} {unit}" for value, unit in ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")) if value
    ]
    return " ".join(parts[:2]) or "0 s"


class LiveProgress:
    """One line that moves: what is being done, a bar, and the time it has taken."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("", total=None)

    def show(self, text: str, done: float = 0, total: float | None = None) -> None:
        self._progress.update(self._task, description=text, completed=done, total=total)

    def tick(self) -> None:
        """Move the spinner."""
        self._progress.refresh()


class NoProgress(LiveProgress):
    """Says nothing: stderr is no terminal."""

    def __init__(self) -> None:
        """It needs no display."""

    def show(self, text: str, done: float = 0, total: float | None = None) -> None:
        """Nobody looks."""

    def tick(self) -> None:
        """Nobody looks."""


@contextmanager
def live() -> Iterator[LiveProgress]:
    """Show progress on stderr while the block runs, and leave nothing of it behind."""
    if not err.is_terminal:
        yield NoProgress()
        return
    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), text, BarColumn(bar_width=30), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, get_time=time.monotonic) as progress:
        yield LiveProgress(progress)
