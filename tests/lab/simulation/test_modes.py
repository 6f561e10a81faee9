"""The daemon under faults, with versions in all modes: rows that run on their own, sequences, groups of processes."""

from collections import deque

import pytest

from tests.lab.simulation.modes import BATCHES_ONLY, GROUPS
from tests.lab.simulation.plan import draw
from tests.lab.simulation.run import explain, prepare, run, run_plan
from tests.lab.simulation.story import Story
from tsctl.daemon.models.registering.spec import mode_of
from tsctl.daemon.models.settings import ModelSettings

FIRST = BATCHES_ONLY + 1


@pytest.fixture(autouse=True)
def _quiet() -> None:
    prepare()


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(first, marks=[pytest.mark.heavy] if first >= FIRST + 100 else [])
        for first in range(FIRST, FIRST + 500, 50)
    ],
)
def test_the_invariants_hold_in_all_modes(first: int) -> None:
    failed = [seed for seed in range(first, first + 50) if run(seed) is not None]

    assert not failed, explain(failed[0])


def modes_of(seed: int) -> set[str]:
    return {
        f"{mode_of(settings)}{' with sequences' * settings.sequences}{' by ranks' * is_spread(settings)}"
        for _, _, settings in draw(seed).models
    }


def is_spread(settings: ModelSettings) -> bool:
    return GROUPS and bool(settings.parallel_type)


def test_each_mode_is_drawn_and_the_first_seeds_run_whole_batches() -> None:
    lone = {"batch", "batch with sequences", "continuous", "continuous with sequences"}
    groups = {f"{mode} by ranks" for mode in lone} if GROUPS else set()

    assert {mode for seed in range(FIRST, FIRST + 100) for mode in modes_of(seed)} == {
        *lone, *groups, "async", "async with sequences",
    }  # fmt: skip
    assert {mode for seed in range(FIRST - 100, FIRST) for mode in modes_of(seed)} == {"batch"}


def story_of(seed: int) -> deque[str]:
    story = Story(lines=deque())
    run_plan(draw(seed), story)
    return story.lines


@pytest.mark.slow
def test_a_seed_is_a_run_in_all_modes() -> None:
    seeds = range(FIRST, FIRST + 5)

    assert [story_of(seed) for seed in seeds] == [story_of(seed) for seed in seeds]


@pytest.mark.slow
def test_seeds_have_all_ends_and_faults_of_rows_and_sequences() -> None:
    told = "\n".join(line for seed in range(FIRST, FIRST + 80) for line in story_of(seed))

    for what in (
        "(place)", "(sequence)", "(suspect)", "(retry)", "(solo)", "is to drop", "is overdue", "hangs (r", "is cut",
        "hangs (all)", "is confused, and says", "is told 409: The state of the sequence", "is refused: The state of",
        "requests of the sequence", "sequences at a time", "not answered within",
        "did not answer within", "has gone", "replace", "the daemon is stopped",
        *(("rank 1 was killed", "rank 1 exited") if GROUPS else ()),
    ):  # fmt: skip
        assert what in told, what
