"""The product's files that a registration and a prediction enter, by a profile function in a real daemon.

    a daemon is started ─▶ a handler is registered ─▶ nothing ─▶ predictions, each on a connection of its own
                           a window                   a window   a window for each, once all is warm

A file counts that most registrations, or predictions, have entered, in daemons that are started anew. A call from one
file to another that timers make, too, while there is nothing to do, does not count.
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
COUNTED = 5  # predictions in each daemon
IDLE = 1.5  # seconds, in which each timer is due
WARM = 20  # predictions before the first that is counted
QUIET = 0.1  # seconds after an answer, within which the daemon sees that the connection has ended
MODEL = "sums"
HANDLER = """\
def handle(data, context):
    \"\"\"Return the sum of each request's numbers.\"\"\"
    return [sum(row["body"]) for row in data]
"""

Window = frozenset[tuple[str, str, str]]  # process, calling file, entered file
Files = Mapping[str, frozenset[str]]  # process → entered files


class Entered(NamedTuple):
    """What was entered in one daemon: by its only registration, by timers, and by each prediction."""

    registration: Window
    idle: Window
    predictions: list[Window]


def windows_in(text: str) -> dict[int, Window]:
    """Return what was entered in each window, from what recorder.py has written."""
    found: dict[int, set[tuple[str, str, str]]] = {}
    for line in text.splitlines():
        number, process, caller, name = line.split(" ", 3)
        found.setdefault(int(number), set()).add((process, caller, name))
    return {number: frozenset(window) for number, window in found.items()}


def usual(windows: Sequence[Window], idle: Sequence[Window]) -> Files:
    """Return the files of each process that most of the windows enter, other than the idle ones do."""
    timed = frozenset().union(*idle)
    count = Counter(each for window in windows for each in {(process, name) for process, _, name in window - timed})
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


def of_one_daemon(tree: Path, folder: Path) -> Entered:
    """Start a daemon of a tree, and stop it; return what was entered there."""
    handler = folder / "handler.py"
    handler.write_text(HANDLER)
    served, recording = Served(folder), Recording(tree, folder)
    command = [sys.executable, "-P", "-m", "tsctl.daemon", "--background"]
    daemon = subprocess.Popen(command, cwd=folder, env=served.environment | recording.environment)
    registration, idle, *predictions = range(1, 3 + COUNTED)
    try:
        eventually(lambda: daemon.poll() is not None or is_ready(served), "the daemon started")
        served.note_address()
        with recording.window(registration):
            register(served, handler)
            time.sleep(QUIET)
        with recording.window(idle):
            time.sleep(IDLE)
        for _ in range(WARM):
            predict(served)
        for number in predictions:
            with recording.window(number):
                predict(served)
                time.sleep(QUIET)
    finally:
        served.stop()
        daemon.terminate()  # where it did not answer
        daemon.wait()
    found = recording.windows()
    return Entered(found[registration], found.get(idle, frozenset()), [found[number] for number in predictions])


def measure(tree: Path) -> tuple[Files, Files]:
    """Start daemons of a tree; return what a registration enters there, and what a warm prediction does."""
    found = []
    for _ in range(DAEMONS):
        with tempfile.TemporaryDirectory(prefix="counter-") as folder:
            found.append(of_one_daemon(tree, Path(folder)))
    idle = [each.idle for each in found]
    predictions = [window for each in found for window in each.predictions]
    return usual([each.registration for each in found], idle), usual(predictions, idle)
