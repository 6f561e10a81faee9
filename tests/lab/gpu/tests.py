"""The tests that can run on a GPU: the very same that run on the CPU elsewhere, in a pytest of their own."""

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from tests.handlers.device import VARIABLE
from tests.lab.benchmarks.environments import ROOT

FOLDER = "tests/handlers"
# Why they cannot run with a device that is not the CPU → which. Others that need a process without CUDA start one.
LEFT_OUT = {
    "they fork the process that they run in, which has called CUDA": ("tests/handlers/test_template.py",),
    "`int8` is for processors": ("tests/handlers/optimize/test_int8.py",),
    "they need tsctl installed, which a clone is not": ("tests/handlers/runtime/test_elsewhere.py",),
}
COMPILING = ("tests/handlers/optimize/test_inductor.py", "tests/handlers/builtin/support/test_modelfile.py")
COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")
EACH = 90  # seconds that a test may take, where it takes one or two: a machine is lent for minutes
ALL = 200.0  # seconds that one pytest may take; 16 cores and an H100 took 77
# Of the GPU's memory for each process: a context takes half a GiB, and the largest model of the tests less than that.
MEMORY = 2 << 30


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome.

    Attributes:
        counts: how many passed, failed …, in pytest's words.
    """

    counts: dict[str, int]
    seconds: float
    good: bool


def processes(cores: int, memory: int | None) -> int:
    """Return how many processes share the device.

    Args:
        memory: of the GPU, in bytes; None on the CPU.
    """
    return max(1, cores // 2 if memory is None else min(cores // 2, memory // MEMORY))


def commands(count: int) -> list[list[str]]:
    """Return the commands: all but the heavy tests by `count` processes, then models that a compiler compiles."""
    common = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    common += ["-o", f"faulthandler_timeout={EACH}"]
    common += ["-W", "ignore::UserWarning"]  # those of a torch that is older than the newest, which CI runs
    left_out = [f"--ignore={file}" for files in LEFT_OUT.values() for file in files]
    side_by_side = ["-n", str(count)] if count > 1 and find_spec("xdist") else []
    return [[*common, *side_by_side, FOLDER, *left_out], [*common, "-m", "heavy", *COMPILING]]


def memory_of(device: str) -> int | None:
    """Return the bytes of a GPU; None of the CPU."""
    import torch

    return torch.cuda.get_device_properties(device).total_memory if device.startswith("cuda") else None


def run(device: str) -> Outcome:
    """Run them; their output goes to this process's."""
    began = time.monotonic()
    counts: dict[str, int] = {}
    good = True
    for command in commands(processes(len(os.sched_getaffinity(0)), memory_of(device))):
        code, last = _printed(command, device)
        good = good and code == 0
        for word, count in outcomes(last).items():
            counts[word] = counts.get(word, 0) + count
    return Outcome(counts, time.monotonic() - began, good)


def _printed(command: Sequence[str], device: str) -> tuple[int, str]:
    """Run a pytest for `ALL` seconds at most; return its exit code and its last line."""
    with subprocess.Popen(
        command, cwd=ROOT, env=os.environ | {VARIABLE: device}, stdout=subprocess.PIPE, text=True
    ) as pytest:
        late = threading.Timer(ALL, pytest.terminate)
        late.start()
        assert pytest.stdout is not None
        last = ""
        for line in pytest.stdout:
            print(line, end="", flush=True)
            last = line if line.strip() else last
        if not late.is_alive():
            print(f"pytest was ended after {ALL:.0f} s", flush=True)
        late.cancel()
    return pytest.returncode, last


def outcomes(line: str) -> dict[str, int]:
    """Read pytest's last line: `1574 passed, 2 skipped in 20.14s`."""
    return {word.removesuffix("s") if word.startswith("error") else word: int(n) for n, word in COUNT.findall(line)}
