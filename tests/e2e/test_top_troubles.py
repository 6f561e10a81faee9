"""A killed worker, errors and refusals are on the screen of `tsctl top`, before a real daemon."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.screen import Screen
from tests.e2e.served import Served

HANDLER = """
import time

def handle(data, context):
    text = bytes(data[0]["body"]).decode()
    if text == "fail":
        raise ValueError("cannot read this")
    time.sleep(float(text))
    return ["done"] * len(data)
"""


@pytest.fixture
def watched(idle: Served) -> Served:
    """A daemon with the model `m`, which waits as many seconds as a request says, or raises."""
    idle.start()
    handler = idle.folder / "handler.py"
    handler.write_text(HANDLER)
    idle.tsctl("register", str(handler), "--model-name", "m", "--batch-size", "1")
    return idle


@pytest.fixture
def screen(watched: Served, tmp_path: Path) -> Iterator[Screen]:
    opened = Screen(tmp_path, watched.environment)
    opened.type("tsctl top")
    opened.wait(lambda lines: any(line.startswith("> m ") for line in lines), "the model")
    yield opened
    opened.press("q")
    opened.close()


def wait_for(screen: Screen, *texts: str) -> None:
    """Wait until each text is somewhere on the screen."""
    screen.wait(lambda lines: all(any(text in line for line in lines) for text in texts), " and ".join(texts))


def errors_a_second(lines: list[str]) -> float:
    row = next((line.split() for line in lines if line.startswith("> m ")), [])
    return float(row[4]) if len(row) > 4 else 0.0


def test_a_killed_worker(watched: Served, screen: Screen) -> None:
    pid = int(watched.describe("m")["workers"][0]["pid"])

    os.kill(pid, signal.SIGKILL)

    wait_for(screen, f"error    m/1.0: worker {pid} ended: killed by SIGKILL")


def test_requests_that_raise(watched: Served, screen: Screen) -> None:
    for _ in range(3):
        assert watched.ask("/predictions/m", b"fail").status == 503

    screen.wait(lambda lines: errors_a_second(lines) > 0, "errors a second")


def test_a_queue_that_overflows(watched: Served, screen: Screen) -> None:
    watched.tsctl("set", "m", "--queue-jobs", "1")
    asking = [threading.Thread(target=watched.ask, args=("/predictions/m", b"1")) for _ in range(6)]
    for each in asking:
        each.start()

    wait_for(screen, "warning  m/1.0: a request was refused: The queue of model")
    screen.wait(lambda lines: errors_a_second(lines) > 0, "refused requests among the errors")

    for each in asking:
        each.join()
