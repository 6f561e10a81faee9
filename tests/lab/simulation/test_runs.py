"""The daemon under faults: whatever a seed draws, the invariants hold. `simulate-faults` of tests.lab runs more."""

import gc
import os
import re

import pytest

from tests.lab.simulation.__main__ import explain, main, run
from tests.lab.simulation.plan import BATCHES_ONLY, GROUPS, draw
from tsctl.daemon.api.management.status import is_compiled
from tsctl.daemon.batching.queue import Queue
from tsctl.daemon.models.registering.spec import mode_of

FIRST = BATCHES_ONLY + 1  # from here on in all modes


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(begin + number, marks=[pytest.mark.heavy] if number >= 100 else [])
        for begin in (1, FIRST)
        for number in range(0, 500, 50)
    ],
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


def modes_of(seeds: range) -> set[tuple[str, bool, bool]]:
    """Return the modes, with or without sequences, of one process or several."""
    drawn = [settings for seed in seeds for _, _, settings in draw(seed).models]
    return {(mode_of(each), each.sequences, GROUPS and bool(each.parallel_type)) for each in drawn}


def test_each_mode_is_drawn_and_the_first_seeds_run_whole_batches() -> None:
    lone = {(mode, sequences, False) for mode in ("batch", "continuous", "async") for sequences in (False, True)}
    groups = {(mode, sequences, GROUPS) for mode, sequences, _ in lone if mode != "async"}

    assert modes_of(range(FIRST, FIRST + 100)) == lone | groups
    assert modes_of(range(FIRST - 100, FIRST)) == {("batch", False, False)}


def story_of(seed: int) -> list[str]:
    story: list[str] = []
    run(seed, story)
    return story


@pytest.mark.slow
def test_a_seed_is_a_run() -> None:
    seeds = (*range(1, 6), *range(FIRST, FIRST + 5))

    assert [story_of(seed) for seed in seeds] == [story_of(seed) for seed in seeds]
    assert story_of(1) != story_of(2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "ends"),
    [
        (range(1, 41), (
            "is told 200", "is told 500", "is told 503", "is told 504", "(ahead)", "(retry)", "(solo)", "not begun",
            "overdue", "did not load", "hangs", "is lost", "leaves", "stalls", "operator: scale",
            "operator: set", "operator: unregister", "from now on nothing goes wrong", "the daemon is stopped",
            "has gone", "is cut",
        )),
        (range(FIRST, FIRST + 80), (
            "(place)", "(sequence)", "(suspect)", "(retry)", "(solo)", "is to drop", "is overdue", "hangs (r",
            "is cut", "hangs (all)", "is confused, and says", "is told 409: The state of the sequence",
            "is refused: The state of", "requests of the sequence", "sequences at a time", "not answered within",
            "did not answer within", "has gone", "replace", "the daemon is stopped",
            *(("rank 1 was killed", "rank 1 exited") if GROUPS else ()),
        )),
    ],
    ids=["whole batches", "all modes"],
)  # fmt: skip
def test_seeds_have_all_kinds_of_ends_and_faults(seeds: range, ends: tuple[str, ...]) -> None:
    told = "\n".join(line for seed in seeds for line in story_of(seed))

    assert [what for what in ends if what not in told] == []


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
    assert f"again: python -m tests.lab.simulation --seed {seed}" in told
    assert "1 failed" in told


def test_a_seed_that_holds_is_told_when_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1"]) == 0

    told = capsys.readouterr().out
    assert told.startswith("seed 1: ") and "the daemon is stopped" in told and "does not hold" not in told
