"""Models with the weights of their packages answer as the same function in process (`python -m tests.lab real`)."""

import subprocess
import sys

import pytest

from tests.e2e.served import PAGE
from tests.lab.real.__main__ import NONE
from tests.places import ROOT


# A process of its own, as these packages warn, and one of them changes the number of torch's threads.
@pytest.mark.parametrize("name", ["magika", "minilm", "streams"])
def test_each_answer_is_that_of_the_function_in_process(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.real", "--installed", name],
        cwd=ROOT, capture_output=True, text=True, timeout=PAGE,
    )  # fmt: skip

    if done.returncode == NONE:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert f"{name}: " in done.stdout and " answers, 0 wrong" in done.stdout
