"""The guard finds planted regressions, and nothing else."""

import random

import pytest

from tests.lab.guard.__main__ import LIMIT, PAIRS, ratio_of, settle

SEEDS = range(200)


def pairs(seed: int, planted: float, noise: float = 0.02, wild: int = 0) -> list[tuple[float, float]]:
    """Return costs of a tree that is `planted` times the baseline, with noise; `wild` pairs are three times as much."""
    chance = random.Random(seed)
    made = []
    for number in range(PAIRS):
        speed = chance.uniform(0.8, 1.3)  # of the machine at this moment: the same for both
        theirs, ours = (40.0 * speed * chance.gauss(1.0, noise) for _ in range(2))
        made.append((theirs, ours * planted * (3.0 if number < wild else 1.0)))
    return made


@pytest.mark.parametrize("planted", [1.10, 1.5, 3.0])
def test_a_planted_regression_is_found(planted: float) -> None:
    assert min(ratio_of(pairs(seed, planted)) for seed in SEEDS) > LIMIT


@pytest.mark.parametrize("planted", [0.7, 0.95, 1.0])
def test_no_regression_is_not(planted: float) -> None:
    assert max(ratio_of(pairs(seed, planted)) for seed in SEEDS) <= LIMIT


def test_a_third_of_the_pairs_may_be_disturbed() -> None:
    assert max(ratio_of(pairs(seed, 1.0, noise=0.01, wild=3)) for seed in SEEDS) <= LIMIT


def test_a_look_that_most_pairs_disturbed_is_made_up_for() -> None:
    disturbed, quiet = [(1.0, 1.2)] * PAIRS, [(1.0, 1.0)] * PAIRS
    measured = iter([*disturbed, *quiet, *quiet, (1.0, 1.0)])

    ratio = settle(measured)

    assert ratio <= LIMIT
    assert len(list(measured)) == 1, "and no pair beyond the third look was measured"


@pytest.mark.parametrize("costs", [[], [(0.0, 1.0)], [(1.0, 1.0), (1.0, 0.0)]], ids=["none", "no baseline", "no cost"])
def test_a_measurement_that_proves_nothing_is_no_verdict(costs: list[tuple[float, float]]) -> None:
    with pytest.raises(ValueError, match="expected pairs of costs above 0"):
        ratio_of(costs)
