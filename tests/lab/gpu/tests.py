"""The tests that can run on a GPU: the very same that run on the CPU elsewhere, in a pytest of their own."""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass

from tests.handlers.device import VARIABLE
from tests.lab.benchmarks.environments import ROOT

# Not those of templates: a template has never called CUDA, and these tests fork the process that they run in. Nor those
# of an installation, which there need not be.
CHOSEN = (
    "tests/handlers",
    "--ignore=tests/handlers/test_template.py",
    "--ignore=tests/handlers/runtime/test_elsewhere.py",
)
COMPILING = ("tests/handlers/optimize/test_inductor.py", "tests/handlers/builtin/support/test_modelfile.py")
COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome.

    Attributes:
        counts: how many passed, failed …, in pytest's words.
    """

    counts: dict[str, int]
    seconds: float
    good: bool


def run(device: str) -> Outcome:
    """Run them in one process, which calls CUDA once; their output goes to this process's."""
    began = time.monotonic()
    common = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    # The second: models that a compiler compiles, which are `heavy`.
    commands = [[*common, *CHOSEN], [*common, "-m", "heavy", *COMPILING]]
    counts: dict[str, int] = {}
    good = True
    for command in commands:
        with subprocess.Popen(
            command, cwd=ROOT, env=os.environ | {VARIABLE: device}, stdout=subprocess.PIPE, text=True
        ) as pytest:
            assert pytest.stdout is not None
            last = ""
            for line in pytest.stdout:
                print(line, end="", flush=True)
                last = line if line.strip() else last
        good = good and pytest.returncode == 0
        for word, count in outcomes(last).items():
            counts[word] = counts.get(word, 0) + count
    return Outcome(counts, time.monotonic() - began, good)


def outcomes(line: str) -> dict[str, int]:
    """Read pytest's last line: `1574 passed, 2 skipped in 20.14s`."""
    return {word.removesuffix("s") if word.startswith("error") else word: int(n) for n, word in COUNT.findall(line)}
