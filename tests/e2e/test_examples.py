"""The examples of each verb's help, as a user types them, before a real daemon."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.served import ARCHIVES, PATIENCE, TSCTL, Served, eventually
from tsctl.daemon.marfile import Packing, write_archive
from tsctl.extension import names
from tsctl.terminal.examples import all_examples

MINUTES = ("tune", "optimize", "demo")  # whose lines are parsed only, in tests/tsctl/terminal/test_help.py
# verb → a text that shows that the line works; then Ctrl-C, or SIGTERM for `run`, ends it
ENDLESS = {
    "run": "listening on",
    "serve": "curl",
    "logs -f": "scorer is ready",
    "events -f": "scorer",
    "console": "until Ctrl-C",
}
# Verbs that leave the daemon and its model as they were: the next example needs no other.
READS = (
    "install-service", "status", "top", "config", "logs", "events", "metrics", "console", "key", "doctor", "archive",
    "new", "check", "ls", "describe", "export", "predict", "bench", "completion",
)  # fmt: skip
# One of each kind of verb.
THIN = (
    "tsctl run --model-store models --models ALL", "tsctl stop && tsctl start", "tsctl status",
    "tsctl config", "tsctl logs -f scorer", "tsctl archive handler.py", "tsctl new scorer",
    "tsctl check handler.py sample.json", "tsctl register scorer.mar --replace", "tsctl describe scorer",
    "tsctl predict scorer sample.json", "tsctl bench scorer sample.json -c 16 -n 500", "tsctl doctor",
    "source <(tsctl completion bash)", "tsctl set scorer --batch-size 8 --max-delay 5",
    *(line for name, line in (("live", "tsctl top"), ("prometheus", "tsctl metrics")) if name in names()),
)  # fmt: skip
HANDLER = """
print("scorer is ready", flush=True)
def predict(rows: list[list[float]]) -> list[float]:
    return [sum(row) for row in rows]
"""
LINES = [
    pytest.param(verb, example.line, id=example.line, marks=[pytest.mark.thin] if example.line in THIN else [])
    for verb, pair in all_examples().items()
    if verb not in MINUTES
    for example in pair
]


class World:
    """A directory with a handler, a sample and a model store, and a daemon."""

    def __init__(self, folder: Path) -> None:
        self.served = Served(folder)
        (folder / "handler.py").write_text(HANDLER)
        (folder / "sample.json").write_text("[5.1, 3.5, 1.4, 0.2]")
        (folder / "models").symlink_to(self.served.store)
        self._word = folder / "word"
        self._unchanged = False  # whether the daemon serves `scorer`, and nothing else has been done to it
        self.served.environment |= {
            "PATH": f"{TSCTL.parent}:{os.environ['PATH']}", "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder / "config"), "TEST_WORD": str(self._word),
        }  # fmt: skip
        self._pack("scorer", "2.0", folder / "handler.py", "scorer-2.mar")
        self._pack("scorer", "1.0", ARCHIVES / "fragile.py", "failing.mar")
        self._pack("scorer", "1.0", folder / "handler.py", "scorer.mar")  # the others were scorer.mar, too

    def _pack(self, name: str, version: str, handler: Path, file: str) -> None:
        packing = Packing(model_name=name, version=version, handler=str(handler))
        write_archive(packing, self.served.store, force=True).rename(self.served.store / file)

    def prepare(self, verb: str, line: str) -> None:
        """Bring the daemon to the state in which the verb's examples are of use."""
        unchanged, self._unchanged = self._unchanged, verb in READS
        if unchanged and verb in READS:
            return
        self.served.stop()
        if verb in ("start", "run"):
            return
        self._word.write_text("fail")
        self.served.start("--no-restore")
        if verb == "retry":
            self.served.tsctl("register", "failing.mar", "--no-wait")
            eventually(lambda: self.served.describe("scorer")["tsctl"]["state"] == "failed", "it fails to load")
            self._word.write_text("go")
        elif verb != "register" or "--replace" in line:
            self.served.tsctl("register", "scorer.mar")
        if verb in ("default", "route", "rollout", "promote", "abort"):
            self.served.tsctl("register", "scorer-2.mar")
        if verb in ("promote", "abort") or line == "tsctl rollout scorer":
            self.served.tsctl("rollout", "scorer/2.0")
        if verb == "apply":
            (self.served.folder / "models.yaml").write_text(self.served.tsctl("export"))
        if verb == "rollback":
            self.served.tsctl("set", "scorer", "--batch-size", "4")

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-e", "-c", line], **self._options(), timeout=PATIENCE)

    def interrupt(self, line: str, shown: str, number: int) -> tuple[str, int]:
        """Run a line until its output has a text, then send a signal; return the output and the exit code."""
        # A test that runs in the background ignores Ctrl-C, and what it starts would, too.
        reset = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            process = subprocess.Popen(
                ["bash", "-e", "-c", f"exec {line}"], **(self._options() | {"stderr": subprocess.STDOUT})
            )
        finally:
            signal.signal(signal.SIGINT, reset)
        with process:
            assert process.stdout is not None
            lines: list[str] = []
            while shown not in (text := process.stdout.readline()):
                assert text, "".join(lines)
                lines.append(text)
            process.send_signal(number)
            return "".join(lines) + process.stdout.read(), process.wait(PATIENCE)

    def _options(self) -> dict[str, Any]:
        return {
            "cwd": self.served.folder, "text": True,
            "env": self.served.environment | {"BROWSER": "true"},  # the program that opens a page, and does nothing
            "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
        }  # fmt: skip


@pytest.mark.thin
def test_the_thin_ones_are_examples() -> None:
    assert set(THIN) <= {example.line for pair in all_examples().values() for example in pair}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("examples"))
    yield made
    made.served.stop()


@pytest.mark.parametrize(("verb", "line"), LINES)
def test_an_example_succeeds(world: World, verb: str, line: str) -> None:
    world.prepare(verb, line)
    line = line.replace(" 8081", " 0").replace(" 8765", " 0")  # a port that is free
    line = line.replace("--interval 5", "--interval 0.5")  # which it waits for
    shown = next((text for beginning, text in ENDLESS.items() if line.startswith(f"tsctl {beginning}")), "")

    if shown:
        output, code = world.interrupt(line, shown, signal.SIGTERM if verb == "run" else signal.SIGINT)
        assert code == 0, output
    else:
        done = world.run(line)
        assert done.returncode == 0, done.stderr
