"""The terminal: its alternate screen, keys one by one, its size. After the block, it is as it was before."""

import contextlib
import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from typing import Any, Self

from rich.text import Text

from tsctl import render
from tsctl.extensions.live.columns import Line, ScreenSize, clean
from tsctl.extensions.live.view import is_cut

# The alternate screen, no cursor, no wrapping at the right edge; and back.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
# Each line is erased before and not behind its text: at the right edge, that would erase the last character.
_HOME, _ERASE = "\x1b[H", "\x1b[K"
_REST = 0.05  # seconds in which the rest of a key's sequence comes


def is_screen() -> bool:
    """Return whether there is a terminal that can be drawn on, and that sends keys."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


def draw_plain(lines: Sequence[Line]) -> None:
    """Print lines one after the other."""
    for line in lines:
        text = _safe(line)
        text.rstrip()
        render.out.print(text, soft_wrap=True)


class Terminal:
    """Draws on the whole screen within the block, and reads keys."""

    def __init__(self) -> None:
        self._input = sys.stdin.fileno()
        self._before: list[Any] = termios.tcgetattr(self._input)
        self._handlers: dict[int, Any] = {}
        self._wake, self._signal = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def __enter__(self) -> Self:
        for number, handler in (
            (signal.SIGWINCH, self._resized), (signal.SIGTERM, self._ended), (signal.SIGTSTP, self._suspended),
        ):  # fmt: skip
            self._handlers[number] = signal.signal(number, handler)
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._signal)

    @property
    def size(self) -> ScreenSize:
        try:
            return ScreenSize(*os.get_terminal_size(sys.stdout.fileno()))
        except OSError:
            return ScreenSize(*shutil.get_terminal_size())

    def draw(self, lines: Sequence[Line]) -> None:
        """Draw the lines, as many as the screen has rows, over what is on the screen."""
        with render.out.capture() as captured:
            for line in lines:
                render.out.print(_safe(line), soft_wrap=True)
        _write(_HOME + "\r\n".join(f"{_ERASE}{line}" for line in captured.get().splitlines()))

    def wait(self, other: int) -> str | None:
        """Wait for keys, for another size, or until `other` is readable.

        Returns:
            The keys' bytes as text, empty without one; None if the terminal sends no more.
        """
        ready = select.select([self._input, self._wake, other], [], [])[0]
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
        if self._input not in ready:
            return ""
        text = ""
        for piece in self._pieces():
            text += piece.decode("utf-8", "replace")
            if not piece or not is_cut(text):
                break
        return text or None

    def _pieces(self) -> Iterator[bytes]:
        yield os.read(self._input, 1024)
        while select.select([self._input], [], [], _REST)[0]:
            yield os.read(self._input, 1024)

    def _take(self) -> None:
        tty.setcbreak(self._input, termios.TCSANOW)  # Ctrl-C and Ctrl-Z remain signals
        _write(_ENTER)

    def _give_back(self) -> None:
        with contextlib.suppress(OSError, termios.error):  # the terminal is gone
            _write(_LEAVE)
            termios.tcsetattr(self._input, termios.TCSAFLUSH, self._before)

    def _resized(self, *_: object) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._signal, b".")

    def _ended(self, number: int, _frame: object) -> None:
        sys.exit(128 + number)  # the block gives the terminal back

    def _suspended(self, *_: object) -> None:
        """Stop as any program does at Ctrl-Z; the shell has its screen meanwhile."""
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)  # of this thread: by `os.kill`, another may take it later; continues here
        signal.signal(signal.SIGTSTP, self._suspended)
        self._take()
        self._resized()


def _safe(line: Line) -> Text:
    """Return a line whose parts a terminal can have, whatever names are in them."""
    return Text.assemble(*((clean(part.text), part.style) for part in line))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
