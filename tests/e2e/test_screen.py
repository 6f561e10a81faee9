"""The command line on a real screen: tmux, 24 rows."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.screen import Screen
from tests.e2e.served import Served, eventually
from tests.kit.shelf import needs

LONG = "a-model-whose-name-has-forty-characters1"
LOADS = """
import time
class Handler:
    def initialize(self, context):
        for step in range(STEPS):
            print("loading step", step, flush=True)
            time.sleep(0.2)
    def handle(self, data, context):
        time.sleep(SECONDS)
        return ["ok"] * len(data)
"""
Open = Callable[..., Screen]


@pytest.fixture
def open_screen(shared: Served, tmp_path: Path) -> Iterator[Open]:
    """Open terminals before the shared daemon."""
    opened: list[Screen] = []

    def open_one(columns: int = 80, **variables: str) -> Screen:
        opened.append(Screen(tmp_path, shared.environment | variables, columns=columns))
        return opened[-1]

    (tmp_path / "sample.json").write_text("[1.5]")
    yield open_one
    for screen in opened:
        screen.close()


@pytest.fixture
def waits(shared: Served, tmp_path: Path) -> Iterator[str]:
    """Register the model `waits`; return the body of a request to it that runs until the test has ended."""
    shared.register("obey", name="waits")
    yield json.dumps({"do": f"wait {tmp_path}/go"})
    (tmp_path / "go").touch()
    shared.tsctl("unregister", "waits")


def write_handler(folder: Path, *, steps: int = 5, seconds: float = 0.0) -> None:
    text = LOADS.replace("STEPS", str(steps)).replace("SECONDS", str(seconds))
    (folder / "handler.py").write_text(text)


def test_output_of_a_checked_handler_stands_above_the_live_line(open_screen: Open, tmp_path: Path) -> None:
    write_handler(tmp_path)

    lines = open_screen().run("tsctl check handler.py")

    assert lines[:6] == [*(f"loading step {step}" for step in range(5)), "file      handler.py, " + lines[5][22:]]
    assert not any("━" in line for line in lines)
    assert lines[-1] == "0"


@pytest.mark.parametrize(
    ("line", "until"),
    [
        pytest.param("tsctl check handler.py", "loading step 2", id="check loads"),
        pytest.param("tsctl check handler.py sample.json", "running sample.json", id="check runs"),
        pytest.param("tsctl tune waits waits.json --clients 4", "measuring", id="tune"),
        pytest.param("tsctl optimize waits waits.json", "waits with none", id="optimize", marks=needs("optimizing")),
    ],
)
def test_ctrl_c_exits_with_130_and_leaves_no_frame(
    open_screen: Open, waits: str, tmp_path: Path, line: str, until: str
) -> None:
    write_handler(tmp_path, steps=500 if until.startswith("loading") else 3, seconds=60)
    (tmp_path / "waits.json").write_text(waits)
    (tmp_path / "temporary").mkdir()
    screen = open_screen(TMPDIR=str(tmp_path / "temporary"))

    screen.type(line)
    screen.wait(lambda lines: any(until in each for each in lines), until)
    screen.press("C-c")
    lines = screen.ended()

    assert lines[-2:] == ["error: interrupted", "130"]
    assert not any(sign in each for each in lines for sign in ("━", "Traceback", "KeyboardInterrupt", "Aborted"))
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.thin
def test_ctrl_c_ends_predict_with_130(open_screen: Open, shared: Served, waits: str) -> None:
    screen = open_screen()

    screen.type(f"tsctl predict waits --json '{waits}'")
    eventually(lambda: shared.describe("waits")["tsctl"]["batching"]["running"] == 1, "the request runs")
    screen.press("C-c")
    lines = screen.ended()

    assert lines[-2:] == ["error: interrupted", "130"]


def test_forty_columns_are_enough_though_a_name_has_as_many_characters(open_screen: Open, shared: Served) -> None:
    shared.register("echo", name=LONG)
    shared.ask("/predictions/echo", b"x")  # so that there is something to draw
    screen = open_screen(40)

    for line in ("tsctl ls", "tsctl status", "tsctl describe echo", "tsctl config echo"):
        lines = screen.run(line)
        assert "…" not in "".join(lines)
        assert lines[-1] == "0"
    shared.tsctl("unregister", LONG)
