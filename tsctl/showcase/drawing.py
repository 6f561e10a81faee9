"""Draw the facts while the scenes write them, from a thread: on a terminal the screen, into a pipe a line for each."""

import contextlib
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator

from rich.live import Live
from rich.text import Text

from tsctl import render
from tsctl.showcase.facts import ShowcaseFacts
from tsctl.showcase.screen import HEIGHT, QUIET, WIDTH, heartbeat, screen, spoken

EVERY = 0.2  # seconds


@contextlib.contextmanager
def drawn(facts: ShowcaseFacts, now: Callable[[], float]) -> Iterator[None]:
    """Draw within the block; the last screen stays."""
    console = render.out
    whole = console.is_terminal and not console.is_dumb_terminal and console.width >= WIDTH and console.height >= HEIGHT
    with _without_echo(), _live(facts, now) if whole else _plain(facts, now) as draw:
        ended = threading.Event()
        thread = threading.Thread(target=_draw_often, args=(draw, ended), name="drawing", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            draw()


@contextlib.contextmanager
def _without_echo() -> Iterator[None]:
    """Show no keys within the block, and drop what was typed: they would be drawn into the screen."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    silent = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)


def _draw_often(draw: Callable[[], None], ended: threading.Event) -> None:
    while not ended.wait(EVERY):
        draw()


@contextlib.contextmanager
def _live(facts: ShowcaseFacts, now: Callable[[], float]) -> Iterator[Callable[[], None]]:
    with Live(console=render.out, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live:

        def draw() -> None:
            live.update(_coloured(screen(facts, now())), refresh=True)

        draw()
        yield draw


def _coloured(lines: list[str]) -> Text:
    """Return the lines in colours, which add no information."""
    text = Text("\n".join(lines), no_wrap=True, overflow="crop")
    text.highlight_regex(r"[█▀▄]+", "cyan")
    text.highlight_regex(r"[\d.]+ ×|failed 0$|failed 0\b", "bold green")
    text.highlight_regex(r"failed [1-9].*", "bold red")
    return text


@contextlib.contextmanager
def _plain(facts: ShowcaseFacts, now: Callable[[], float]) -> Iterator[Callable[[], None]]:
    written = 0
    last = time.monotonic()

    def draw() -> None:
        nonlocal written, last
        lines = spoken(facts)[written:]
        written += len(lines)
        if not lines and facts.doing and time.monotonic() - last >= QUIET:
            lines = [heartbeat(facts, now())]
        for line in lines:
            render.plain(line)
            last = time.monotonic()

    draw()
    yield draw
