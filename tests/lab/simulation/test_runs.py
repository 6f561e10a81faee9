"""The daemon under faults: whatever a seed draws, the invariants hold. `simulate-faults` of tests.lab runs more."""

import gc
import os
import re
from collections import deque

import pytest

from tests.lab.simulation.__main__ import main
from tests.lab.simulation.plan import draw
from tests.lab.simulation.run import explain, prepare, run, run_plan
from tests.lab.simulation.story import Story
from tsctl.daemon.api.management.status import is_compiled
from tsctl.daemon.batching.queue import Queue


@pytest.fixture(autouse=True)
def _quiet() -> None:
    prepare()


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [pytest.param(first, marks=[pytest.mark.heavy] if first > 100 else []) for first in range(1, 501, 50)]
)
def test_the_invariants_hold(first: int) -> None:
    failed = [seed for seed in range(first, first + 50) if run(seed) is not None]

    assert not failed, explain(failed[0])


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(2340, id="one that was compared late went before older ones"),
        pytest.param(23667, id="one that came back unbegun was not compared"),
        pytest.param(24151, id="one that came back unbegun waited for ever while it was compared"),
        pytest.param(25841, id="a policy was set while one was compared, and held that one anew"),
    ],
)
def test_a_seed_holds_that_failed_once(seed: int) -> None:
    assert run(seed) is None


def story_of(seed: int) -> deque[str]:
    story = Story(lines=deque())
    run_plan(draw(seed), story)
    return story.lines


def test_a_seed_is_a_run() -> None:
    assert [story_of(seed) for seed in range(1, 6)] == [story_of(seed) for seed in range(1, 6)]
    assert story_of(1) != story_of(2)


def test_seeds_have_all_kinds_of_ends_and_faults() -> None:
    told = "\n".join(line for seed in range(1, 41) for line in story_of(seed))

    for what in (
        "is told 200", "is told 500", "is told 503", "is told 504", "(ahead)", "(retry)", "(solo)", "not begun",
        "overdue", "did not load", "hangs", "is lost", "leaves", "stalls", "operator: scale",
        "operator: set", "operator: unregister", "from now on nothing goes wrong", "the daemon is stopped",
        "has gone", "is cut",
    ):  # fmt: skip
        assert what in told, what


def test_runs_leave_no_descriptors() -> None:
    before = len(os.listdir("/proc/self/fd"))

    for seed in range(1, 11):
        run(seed)

    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.skipif(is_compiled(), reason="an error is planted, and what is compiled cannot be changed")
def test_a_seed_that_fails_tells_its_story(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Queue, "put_back", lambda queue, job: None)
    seed = next(seed for seed in range(1, 100) if run(seed) is not None)

    assert main(["--seeds", "1", "--first", str(seed), "--jobs", "1"]) == 1

    told = capsys.readouterr().out
    assert f"seed {seed}: " in told
    assert re.search(r"\n +\d+\.\d{4}  worker \d+ of a/1: ", told)  # the last events, each at its moment
    assert "it does not hold that the queue counts those that wait\n    queue: <Queue " in told
    assert f"again: python -m tests.lab.simulation --seed {seed} --story" in told
    assert "1 failed" in told


def test_a_seed_that_holds_is_told_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1", "--story"]) == 0

    told = capsys.readouterr().out
    assert told.startswith("seed 1: ") and "the daemon is stopped" in told and "does not hold" not in told
