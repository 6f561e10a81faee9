"""The product's files that a registration and a prediction enter, by a profile function in a real daemon.

    a daemon is started ─▶ a handler is registered ─▶ some predictions, each on a connection of its own
                           window 1                   not counted, until all is warm; then a window for each

What a timer happens to do meanwhile is not counted: daemons are started anew, and a file counts that most of the
registrations, or predictions, have entered.
"""

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from tests.e2e.served import Served, eventually
from tests.lab.counter import recorder

DAEMONS = 3
WARM = 20  # predictions before the first that is counted
COUNTED = 5  # predictions in each daemon
QUIET = 0.05  # seconds after an answer, within which the daemon sees that the connection has ended
MODEL = "sums"
HANDLER = """\
def handle(data, context):
    \"\"\"Return the sum of each request's numbers.\"\"\"
    return [sum(row["body"]) for row in data]
"""

Window = Mapping[str, frozenset[str]]  # process → files


class Entered(NamedTuple):
    """The files that were entered, by process."""

    registration: Window
    prediction: Window


def windows_in(text: str) -> dict[int, Window]:
    """Return the files of each process in each window, from what recorder.py has written."""
    found: dict[int, dict[str, set[str]]] = {}
    for line in text.splitlines():
        number, process, name = line.split(" ", 2)
        found.setdefault(int(number), {}).setdefault(process, set()).add(name)
    return {number: {one: frozenset(names) for one, names in window.items()} for number, window in found.items()}


def usual(windows: Sequence[Window]) -> Window:
    """Return the files of each process that are in most of the windows."""
    count = Counter((process, name) for window in windows for process, names in window.items() for name in names)
    most = sorted(each for each, times in count.items() if 2 * times > len(windows))
    return {process: frozenset(name for one, name in most if one == process) for process, _ in most}


class Recording:
    """The files that recorder.py shares with the processes of one daemon.

    Attributes:
        environment: makes each Python process that has it record.
    """

    def __init__(self, tree: Path, folder: Path) -> None:
        self._entered = folder / "entered"
        self._entered.touch()
        hook = folder / "hook"
        hook.mkdir()
        shutil.copy(recorder.__file__, hook / "sitecustomize.py")
        shared = folder / "window"
        shared.write_bytes(b"\0")
        with shared.open("r+b") as file:
            self._window = mmap.mmap(file.fileno(), 1)
        self.environment = {
            "PYTHONPATH": f"{hook}{os.pathsep}{tree}",
            recorder.TREE: str(tree),
            recorder.WINDOW: str(shared),
            recorder.ENTERED: str(self._entered),
        }

    @contextmanager
    def window(self, number: int) -> Iterator[None]:
        """Record in the window of that number, 1 to 255."""
        self._window[0] = number
        try:
            yield
        finally:
            self._window[0] = 0

    def windows(self) -> dict[int, Window]:
        return windows_in(self._entered.read_text())


def is_ready(served: Served) -> bool:
    """Return whether a daemon answers, and has come to the end of its start."""
    try:
        return served.command("GET", "/ping").status == 200
    except OSError:
        return False


def register(served: Served, handler: Path) -> None:
    """Register a file by the request that `tsctl register` sends."""
    parameters = {"url": handler, "model_name": MODEL, "initial_workers": 1, "synchronous": "true"}
    answer = served.command("POST", f"/models?{urlencode(parameters)}")
    assert answer.status == 200, answer.body


def predict(served: Served) -> None:
    """Make one prediction on a new connection."""
    answer = served.ask(f"/predictions/{MODEL}", b"[1, 2.5]", Content_Type="application/json")
    assert (answer.status, answer.json) == (200, 3.5), answer.body


def of_one_daemon(tree: Path, folder: Path) -> tuple[Window, list[Window]]:
    """Return what the first registration of a daemon enters, and what some warm predictions do."""
    handler = folder / "handler.py"
    handler.write_text(HANDLER)
    served, recording = Served(folder), Recording(tree, folder)
    command = [sys.executable, "-P", "-m", "tsctl.daemon", "--background"]
    daemon = subprocess.Popen(command, cwd=folder, env=served.environment | recording.environment)
    counted = range(2, 2 + COUNTED)
    try:
        eventually(lambda: is_ready(served), "the daemon started")
        served.note_address()
        with recording.window(1):
            register(served, handler)
        for _ in range(WARM):
            predict(served)
        for number in counted:
            with recording.window(number):
                predict(served)
                time.sleep(QUIET)
    finally:
        served.stop()
        daemon.wait()
    found = recording.windows()
    return found[1], [found[number] for number in counted]


def measure(tree: Path) -> Entered:
    """Start daemons of a tree, and return what a registration and a warm prediction enter there."""
    registrations, predictions = [], []
    for _ in range(DAEMONS):
        with tempfile.TemporaryDirectory(prefix="counter-") as folder:
            registered, predicted = of_one_daemon(tree, Path(folder))
        registrations.append(registered)
        predictions += predicted
    return Entered(usual(registrations), usual(predictions))
