"""The tests that can run on a GPU: the very same that run on the CPU elsewhere, in a pytest of their own."""

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from typing import NamedTuple

from tests.handlers.device import VARIABLE
from tests.places import ROOT

FOLDER = "tests/handlers"
# Why they cannot run with a device that is not the CPU → which. Others that need a process without CUDA start one.
LEFT_OUT = {
    "they fork the process that they run in, which has called CUDA": ("tests/handlers/test_template.py",),
    "`int8` is for processors": ("tests/handlers/optimize/test_int8.py",),
    "they need tsctl installed, which a clone is not": ("tests/handlers/runtime/test_elsewhere.py",),
}
COMPILING = ("tests/handlers/optimize/test_inductor.py", "tests/handlers/builtin/support/test_modelfile.py")
EACH = 90  # seconds that a test may take, where it takes one or two: a machine is lent for minutes
ALL = 200.0  # seconds that all of pytest may take; 16 cores and an H100 took 77
# Of the GPU's memory for each process: a context takes half a GiB, and the largest model of the tests less than that.
MEMORY = 2 << 30


class Outcome(NamedTuple):
    """Whether all tests passed, and the seconds that they took."""

    good: bool
    seconds: float


def commands(device: str) -> list[list[str]]:
    """Return the commands: all but the heavy tests by several processes, then models that a compiler compiles.

    None of these on null cards: Triton loads what it has made by calls of libcuda that null cards lack.
    """
    import torch

    count = len(os.sched_getaffinity(0)) // 2
    if device.startswith("cuda"):
        count = min(count, torch.cuda.get_device_properties(device).total_memory // MEMORY)
    common = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short"]
    common += ["-o", f"faulthandler_timeout={EACH}"]
    null = "NULL_CUDA_FOLDER" in os.environ
    common += ["-p", "tests.kit.null_gpu.numbers"] * null
    common += ["-W", "ignore::UserWarning"]  # those of a torch that is older than the newest, which CI runs
    left_out = [f"--ignore={file}" for files in LEFT_OUT.values() for file in files]
    side_by_side = ["-n", str(count)] if count > 1 and find_spec("xdist") else []
    return [[*common, *side_by_side, FOLDER, *left_out], *([[*common, "-m", "heavy", *COMPILING]] * (not null))]


def run(device: str) -> Outcome:
    """Run them, for `ALL` seconds at most; their output goes to this process's."""
    began, good = time.monotonic(), True
    for command in commands(device):
        try:
            left = max(0.0, began + ALL - time.monotonic())
            done = subprocess.run(command, cwd=ROOT, env=os.environ | {VARIABLE: device}, timeout=left)
            good = good and done.returncode == 0
        except subprocess.TimeoutExpired:
            print(f"pytest was ended, {ALL:.0f} s after the first one began", flush=True)
            good = False
    return Outcome(good, time.monotonic() - began)
