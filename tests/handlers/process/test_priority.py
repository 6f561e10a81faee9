"""A process that steps back runs only where no other wants the core, also where sessions share the cores alike."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tsctl.handlers.own_process import BACKGROUND

ROOT = Path(__file__).parents[3]
AUTOGROUP = Path("/proc/self/autogroup")
# The policy, and the autogroup's priority, before and after. The file is empty for one whose session has no autogroup.
PROGRAM = """
import os
from pathlib import Path
from tsctl.handlers.own_process import step_back_if_asked
def now():
    file = Path("/proc/self/autogroup")
    words = file.read_text().split() if file.exists() else []
    return os.sched_getscheduler(0) == os.SCHED_IDLE, words[-1] if words else "none"
print(*now())
step_back_if_asked()
print(*now())
"""


def run(*, leads: bool, asked: bool) -> list[list[str]]:
    environment = {name: value for name, value in os.environ.items() if name != BACKGROUND}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment | ({BACKGROUND: "true"} if asked else {}),
        cwd=ROOT, start_new_session=leads, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line.split() for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_process_that_leads_its_session_steps_back_with_it() -> None:
    before, after = run(leads=True, asked=True)

    assert (before[0], after[0]) == ("False", "True")
    assert (before[1], after[1]) in (("0", "19"), ("none", "none"))


@pytest.mark.slow
def test_one_of_anothers_session_leaves_that_as_it_is() -> None:
    before, after = run(leads=False, asked=True)

    assert (before[0], after[0]) == ("False", "True")
    assert before[1] == after[1]


@pytest.mark.slow
def test_who_is_not_asked_stays() -> None:
    before, after = run(leads=True, asked=False)

    assert before == after == ["False", before[1]]
