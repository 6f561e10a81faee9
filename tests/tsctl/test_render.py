"""The output for people: numbers, tables and drawings."""

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from tsctl import render

KIB, MIB, GIB = 1024.0, 1024.0**2, 1024.0**3


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Capture what is printed; call it for the lines, without the spaces at their ends."""
    text = io.StringIO()
    monkeypatch.setattr(render, "out", Console(file=text, width=200, highlight=False))
    return lambda: [line.rstrip() for line in text.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (KIB, "1.0 KiB"),
        (1.5 * KIB, "1.5 KiB"),
        (MIB, "1.0 MiB"),
        (64 * MIB, "64.0 MiB"),
        (GIB, "1.0 GiB"),
        (5000 * GIB, "5000.0 GiB"),
    ],
)
def test_bytes_text(count: float, text: str) -> None:
    assert render.bytes_text(count) == text


@pytest.mark.parametrize(
    ("best", "costs", "text"),
    [
        (1, {1: 25.0, 8: 25.1}, "1: a batch of 8 takes as long as 8 requests (learned)"),
        (1, {1: 22.0, 8: 42.0}, "1: a batch of 8 takes as long as 15 requests (learned)"),
        (1, {1: 4.0, 128: 4.0}, "1: a batch of 128 takes as long as 128 requests (learned)"),
        (1, {1: 4.0, 4: 3.5}, "1: 4.00 ms a request in batches of 1, 3.50 ms in batches of 4 (learned)"),
        (4, {4: 4.5, 16: 7.75}, "4: 4.50 ms a request in batches of 4, 7.75 ms in batches of 16 (learned)"),
        (8, {1: 21.0, 4: 6.0, 8: 3.5}, "8: a batch of 8 takes as long as 1.3 requests (learned)"),
        (32, {1: 25.0, 8: 3.2, 32: 0.79}, "32: a batch of 32 takes as long as 1 request (learned)"),
        (8, {4: 6.04, 8: 3.672}, "8: 3.67 ms a request in batches of 8, 6.04 ms in batches of 4 (learned)"),
        (8, {8: 3.5}, ""),
        (32, {1: 21.0, 8: 3.5}, ""),
        (None, {}, ""),
    ],
)
def test_the_best_size_is_told_with_what_it_gains_or_a_larger_one_loses(
    best: int | None, costs: dict[int, float], text: str
) -> None:
    sizes = [{"size": size, "requestMs": cost} for size, cost in costs.items()]

    assert render.best_size_text({"bestSize": best, "sizes": sizes}) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.9, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3661, "1 h 1 min"),
        (86400 + 3 * 3600 + 59, "1 d 3 h"),
        (40 * 86400, "40 d"),
    ],
)
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert render.duration_text(seconds) == text


@pytest.mark.parametrize(
    ("counts", "lines"),
    [
        pytest.param([("1", 0), ("2", 0)], ["1 0", "2 0"], id="zeros"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_a_histogram_may_have_nothing_to_show(
    shown: Callable[[], list[str]], counts: list[tuple[str, int]], lines: list[str]
) -> None:
    render.histogram(counts)

    assert [line.split() for line in shown() if line] == [line.split() for line in lines]


@pytest.mark.parametrize("width", [40, 20, 10])
def test_a_histogram_has_room_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    text = io.StringIO()
    monkeypatch.setattr(render, "out", Console(file=text, width=width, highlight=False))

    render.histogram([("1", 10), ("16", 123)])

    lines = text.getvalue().splitlines()
    assert [line.split()[0::2] for line in lines] == [["1", "10"], ["16", "123"]]
    assert lines[1].count("█") == width - len("16") - len("123") - 4
    assert "…" not in text.getvalue()


def test_a_table_aligns_numbers_right_and_facts_are_one_a_line(shown: Callable[[], list[str]]) -> None:
    render.table(("MODEL", ">WORKERS"), [("resnet", 1), ("a", render.state("ready"))])
    render.facts([("daemon", "pid 3"), ("up", render.state("ready"))])

    assert shown() == ["MODEL   WORKERS", "resnet        1", "a         ready", "daemon  pid 3", "up      ready"]


@pytest.mark.parametrize("why", ["in\ntwo lines", "a\t" * 20, "word " * 45], ids=["lines", "tabs", "too long"])
def test_a_row_begins_below_a_cell_of_several_lines(shown: Callable[[], list[str]], why: str) -> None:
    render.table(("MODEL", "WHY"), [("a", why), ("b", "ready")])

    lines = shown()
    assert [line for line in lines if line[0] != " "] == ["MODEL  WHY", lines[1], "b      ready"]
    assert lines[1].startswith("a      ") and lines[-1] == "b      ready" and len(lines) > 3


def test_a_long_error_makes_no_other_line_longer(capsys: pytest.CaptureFixture[str]) -> None:
    long = "out of memory " * 50
    render.facts([("state", "ready"), ("last exit", long)])
    render.verdicts([("GPU", "problem", long, ""), ("clock", "ok", "right", "a remedy")])
    render.table(("MODEL", "WHY"), [("net", long), ("other", "-")])
    render.table(("MODEL", "WHY"), [("net", f"{long}\nin two lines"), ("other", "-")])

    lines = capsys.readouterr().out.splitlines()

    assert [line for line in lines if line != line.rstrip()] == []
    assert sorted(map(len, lines))[-5] < 40, "all but the four with the error"


def test_without_a_terminal_there_is_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    with render.live() as progress:
        progress.show("loading", 1, 2)
        progress.tick()

    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_progress_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(render, "err", Console(file=terminal, force_terminal=True, width=100))

    with render.live() as progress:
        progress.show("loading [red]net[/red]", 1, 2)
        progress.tick()

    assert "loading [red]net[/red]" in terminal.getvalue()
    assert terminal.getvalue().endswith("\x1b[2K")  # the line is erased


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"), (0.0004, "0"), (0.0123, "0.012"), (0.4, "0.4"), (1.0, "1.00"), (9.994, "9.99"),
        (12.34, "12.3"), (99.96, "100"), (1327.4, "1327"),
    ],
)  # fmt: skip
def test_numbers_have_about_three_digits(value: float, text: str) -> None:
    assert render.number_text(value) == text


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        pytest.param(40, ["12:00 info  worker 7 was killed"], id="a line that fits is one"),
        pytest.param(28, ["12:00 info  worker 7 was", "            killed"], id="else wrapped beside its beginning"),
        pytest.param(20, ["12:00 info  worker 7 was killed"], id="where there is hardly room, as it is"),
    ],
)
def test_a_line_hangs(width: int, lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(render, "out", Console(file=text, width=width, highlight=False))

    render.hanging("12:00 info  worker 7 was killed", 12)

    assert [line.rstrip() for line in text.getvalue().splitlines()] == lines


@pytest.mark.parametrize(
    ("width", "terminal", "line", "rest"),
    [
        pytest.param(40, True, "12:00 info  worker 7 was killed", False, id="a line that fits is whole"),
        pytest.param(20, True, "12:00 info  worker …", True, id="else cut to the terminal"),
        pytest.param(20, False, "12:00 info  worker 7 was killed", False, id="a pipe gets it whole"),
    ],
)
def test_a_line_is_cut(width: int, terminal: bool, line: str, rest: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(render, "out", Console(file=text, width=width, highlight=False, force_terminal=terminal))

    assert render.cut("12:00 info  worker 7 was killed") is rest

    assert text.getvalue() == f"{line}\n"
