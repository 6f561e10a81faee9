"""`tsctl top` on a real screen, before a real daemon."""

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.load import Connecting, repeating
from tests.e2e.screen import Screen
from tests.e2e.served import Served

MODES = "stty -a | grep -o -e '-*icanon' -e '-*echo '"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon with the model `echo`, and a client that asks it without end."""
    with Served(tmp_path_factory.mktemp("loaded")) as served:
        served.start()
        served.register("echo")
        with repeating(Connecting(partial(served.ask, "/predictions/echo", b"x")).once, every=0.01):
            yield served


@pytest.fixture
def screen(loaded: Served, tmp_path: Path) -> Iterator[Screen]:
    opened = Screen(tmp_path, loaded.environment)
    opened.type("echo before")
    # What is typed while a command runs is shown by the terminal, and then once more by the shell.
    opened.wait(lambda lines: list(filter(None, lines))[-2:] == ["before", ">"], "the command has ended")
    yield opened
    opened.close()


def number(lines: list[str], index: int) -> float:
    """Return a number of the selected model's row; 0 while there is no row."""
    row = next((line.split() for line in lines if line.startswith("> echo")), [])
    return float(row[index]) if len(row) > index else 0.0


def has_batches(lines: list[str]) -> bool:
    """Return whether there is a batch below the title."""
    title = next((index for index, line in enumerate(lines) if line.startswith("BATCHES")), len(lines))
    return any(" ms  " in line for line in lines[title + 1 :])


@pytest.mark.thin
def test_the_load_of_a_model_is_shown_and_q_restores_the_screen(screen: Screen) -> None:
    screen.type("tsctl top")
    screen.wait(lambda lines: number(lines, 3) > 0, "requests a second")
    screen.press("Enter")
    screen.wait(has_batches, "batches as they form")
    screen.wait(lambda lines: any("ready: 1 of 1 workers" in line for line in lines), "the last events")
    screen.press("Escape")
    screen.wait(lambda lines: number(lines, 3) > 0, "all models again")

    screen.press("q")

    assert screen.ended() == ["before", "> tsctl top", "0"]
    assert {"icanon", "echo"} <= set(screen.run(MODES))  # not -icanon, nor -echo


def test_ctrl_c_and_sigterm_restore_the_terminal(screen: Screen, tmp_path: Path) -> None:
    screen.type("tsctl top")
    screen.wait(lambda lines: number(lines, 3) > 0, "requests a second")

    screen.press("C-c")

    assert screen.ended()[-2:] == ["error: interrupted", "130"]
    assert {"icanon", "echo"} <= set(screen.run(MODES))
    screen.type(f"bash -c 'echo $$ > {tmp_path}/pid; exec tsctl top'")
    screen.wait(lambda lines: number(lines, 3) > 0, "requests a second")

    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)

    assert screen.ended()[-1] == "143"
    assert {"icanon", "echo"} <= set(screen.run(MODES))


def test_ctrl_z_gives_the_terminal_to_the_shell_until_fg(screen: Screen) -> None:
    screen.type("tsctl top")
    screen.wait(lambda lines: number(lines, 3) > 0, "requests a second")

    screen.press("C-z")
    screen.wait(lambda lines: any("Stopped" in line for line in lines), "the shell has the terminal")
    modes = screen.run(MODES)
    screen.type("fg")
    screen.wait(lambda lines: number(lines, 3) > 0, "the screen is drawn again")
    screen.press("q")

    assert modes[:2] == ["icanon", "echo"]
    assert screen.ended()[-1] == "0"


def test_a_daemon_may_go_away_and_come_back_and_the_size_may_change(loaded: Served, screen: Screen) -> None:
    screen.type("tsctl top")
    screen.wait(lambda lines: number(lines, 3) > 0, "requests a second")

    loaded.stop()
    screen.wait(lambda lines: lines[0].startswith("No answer since"), "the daemon is away")
    assert any(line.startswith("> echo") for line in screen.lines())
    loaded.start()
    screen.wait(lambda lines: f"pid {loaded.pid}" in lines[0], "the daemon is back")
    screen.resize(40, 10)
    screen.wait(lambda lines: len(lines) == 10 and lines[9].startswith("↑↓ select"), "the screen in its new size")
    assert any(line.startswith("> echo") for line in screen.lines())

    screen.press("q")
    assert screen.ended()[-1] == "0"


@pytest.mark.parametrize(
    "line", ["tsctl top --once", "TERM=dumb tsctl top", "tsctl top | cat", "tsctl top < /dev/null"]
)
def test_without_a_whole_screen_there_is_one_table(screen: Screen, line: str) -> None:
    lines = screen.run(line)

    assert [each.split()[0] for each in lines[:-1]] == ["MODEL", "echo"]
    assert lines[-1] == "0"
