"""Where the whole screen is drawn, and where lines are printed."""

import io

import pytest
from rich.console import Console

from tsctl import render
from tsctl.showcase.drawing import drawn
from tsctl.showcase.facts import MeasuredPace, ShowcaseFacts

HEADING = "Answers per second, 8 clients"  # on the screen only


def drawn_on(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, width: int = 80, height: int = 24) -> str:
    """Return everything that a short demo writes."""
    written = io.StringIO()
    console = Console(file=written, force_terminal=terminal, width=width, height=height, color_system=None)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(render, "out", console)
    facts = ShowcaseFacts(bytes(64), "A network.", 8, doing="measuring")
    with drawn(facts, lambda: 1.0):
        facts.paces.append(MeasuredPace("in ones", 800.0, 1.0))
        facts.doing, facts.finished = "", True
    return written.getvalue()


def test_a_terminal_of_80_by_24_has_the_screen_which_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    written = drawn_on(monkeypatch, terminal=True)

    assert HEADING in written
    last = written[written.rindex(HEADING) :]
    assert "tsctl serve hello/handler.py" in last
    assert last.rstrip(" \n").endswith("'some text'\n\x1b[?25h")  # the cursor is shown again; nothing is erased


@pytest.mark.parametrize(
    ("terminal", "width", "height"),
    [
        pytest.param(False, 80, 24, id="a pipe"),
        pytest.param(True, 79, 24, id="a narrow terminal"),
        pytest.param(True, 80, 23, id="a low terminal"),
    ],
)
def test_others_get_lines(monkeypatch: pytest.MonkeyPatch, terminal: bool, width: int, height: int) -> None:
    written = drawn_on(monkeypatch, terminal=terminal, width=width, height=height)

    assert HEADING not in written
    assert "\x1b" not in written
    lines = written.splitlines()
    assert lines[0] == "A network."
    assert "  in ones: 800 answers per second" in lines
    assert lines.count("  tsctl serve hello/handler.py") == 1
