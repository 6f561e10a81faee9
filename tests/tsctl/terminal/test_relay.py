"""A process whose output appears above a live line."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console
from rich.progress import Progress

from tsctl import render
from tsctl.cli import main
from tsctl.commands import check
from tsctl.terminal.relay import events_of, relayed

pytestmark = pytest.mark.slow
# Writes a file on Ctrl-C, as one that removes its folder; prints what must not be seen any more.
INTERRUPTED = """
import pathlib, sys, time
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    pathlib.Path(sys.argv[1]).touch()
    print("Traceback", file=sys.stderr)
"""


class Recorded(render.LiveProgress):
    """Remembers the printed lines."""

    def __init__(self) -> None:
        super().__init__(Progress(disable=True))
        self.lines: list[str] = []

    def print(self, text: str) -> None:
        self.lines.append(text)


def python(script: str, *arguments: str | Path) -> list[str]:
    return [sys.executable, "-c", script, *map(str, arguments)]


def test_lines_appear_as_they_are_complete() -> None:
    progress = Recorded()

    with relayed(python("import sys; sys.stderr.write('a\\n10 %\\r99 %\\nlast')"), progress) as process:
        pass

    assert progress.lines == ["a", "99 %", "last"]
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (lambda: signal.raise_signal(signal.SIGTERM), SystemExit),
        (lambda: signal.raise_signal(signal.SIGHUP), SystemExit),
        (lambda: signal.raise_signal(signal.SIGINT), KeyboardInterrupt),
    ],
    ids=["SIGTERM", "SIGHUP", "Ctrl-C"],
)
def test_a_signal_interrupts_the_process_which_cleans_up_in_silence(
    tmp_path: Path, end: Callable[[], None], error: type[BaseException]
) -> None:
    progress = Recorded()

    def run() -> None:
        with relayed(python(INTERRUPTED, tmp_path / "cleaned"), progress, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            end()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    try:
        with pytest.raises(error):
            run()
    finally:
        signal.signal(signal.SIGINT, before)

    assert (tmp_path / "cleaned").exists()
    assert progress.lines == []


def test_output_stands_above_the_live_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(render, "err", Console(file=terminal, force_terminal=True, width=60))

    with render.live() as progress:
        progress.show("loading")
        with relayed(python("print('from the worker', file=__import__('sys').stderr)"), progress):
            pass

    erased, line = "\x1b[2K", "from the worker\n"
    assert line in terminal.getvalue()
    assert terminal.getvalue().partition(line)[0].endswith(erased)


def test_a_process_without_an_input_of_its_own_has_that_of_the_command(tmp_path: Path) -> None:
    sample, before = tmp_path / "sample", os.dup(0)
    sample.write_text('{"sample": 1}')
    with sample.open() as given:
        os.dup2(given.fileno(), 0)
    try:
        events = list(events_of(python("import sys; print(sys.stdin.read())"), Recorded(), "the process"))
    finally:
        os.dup2(before, 0)
        os.close(before)

    assert events == [{"sample": 1}]


def test_what_a_check_has_printed_is_shown_before_its_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "handler.py"
    file.write_text("def handle(data, context):\n    return data\n")
    script = (
        "import json, sys; print(json.dumps({'stage': 'failed', 'message': 'so'}), flush=True); sys.stderr.write('why')"
    )
    monkeypatch.setattr(check, "CHECK", python(script))

    done = CliRunner().invoke(main, ["check", str(file)])

    assert (done.exit_code, done.stderr) == (1, "why\nerror: so\n")
