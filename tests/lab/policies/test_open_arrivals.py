"""Arrivals that do not wait for answers: waiting does not pay, and `auto` does not wait; in bursts it does."""

from functools import cache
from statistics import fmean

import pytest

from tests.lab.policies.loads import Bursts, Poisson
from tests.lab.policies.rows import CLOSED, MODEL, OPEN, OVERLOAD, TINY, Row, rate
from tests.lab.policies.world import Measured, SimulatedModel

SEEDS = (1, 2, 3, 4, 5)
REQUESTS = 3000


@cache
def runs(row: Row, policy: str) -> list[Measured]:
    return [row.world(policy, seed).run(REQUESTS).settled() for seed in SEEDS]


def later_runs(row: Row, policy: str) -> list[Measured]:
    """Return the second halves: by then `auto` has tried the sizes of batches that it cannot know otherwise."""
    return [row.world(policy, seed).run(2 * REQUESTS).settled(0.5) for seed in SEEDS]


@pytest.mark.heavy
@pytest.mark.parametrize("load", [0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95])
def test_independent_requests_are_answered_as_fast_as_by_greedy(load: float) -> None:
    row = Row("", Poisson(rate(load)))
    auto, greedy = later_runs(row, "auto"), later_runs(row, "greedy")

    assert fmean(run.mean for run in auto) <= 1.02 * fmean(run.mean for run in greedy)
    assert fmean(run.percentile(99) for run in auto) <= 1.05 * fmean(run.percentile(99) for run in greedy)


@pytest.mark.slow
def test_under_overload_every_batch_is_full() -> None:
    world = OVERLOAD.world("auto")
    world.run(2000)
    before = dict(world.dispatcher.sizes)
    sizes = world.run(6000).sizes - world.dispatcher.sizes.__class__(before)

    assert set(sizes) == {MODEL.batch_size}


@pytest.mark.heavy
@pytest.mark.slow
def test_parallel_curls_travel_in_fewer_batches_and_wait_hardly_longer() -> None:
    row = Row("", Bursts(8, 0.024, 1.0), SimulatedModel(max_delay=0.1))
    auto, fixed = runs(row, "auto"), runs(row, "torchserve")

    batches = fmean(8 * sum(run.sizes.values()) / REQUESTS for run in auto)
    assert batches <= 3.3
    assert fmean(run.mean for run in auto) <= 0.0135
    assert fmean(run.mean for run in fixed) > 0.1, "what a fixed delay costs them"


@pytest.mark.heavy
def test_calls_that_come_in_threes_are_answered_sooner_than_by_any_other_rule() -> None:
    row = Row("", Bursts(3, 0.005, 0.3))
    auto = fmean(run.mean for run in runs(row, "auto"))

    assert auto <= 0.01153
    for policy in ("greedy", "torchserve", "triton", "bentoml"):
        assert auto < fmean(run.mean for run in runs(row, policy)), policy


@pytest.mark.heavy
def test_a_tiny_model_is_not_held_up() -> None:
    row = Row("", Poisson(rate(0.3, TINY)), TINY)

    assert fmean(run.mean for run in runs(row, "auto")) <= 1.03 * fmean(run.mean for run in runs(row, "greedy"))


@pytest.mark.heavy
@pytest.mark.parametrize("row", [*CLOSED, *OPEN, OVERLOAD], ids=lambda row: row.name)
def test_no_job_is_held_longer_than_the_delay_and_no_batch_is_too_large(row: Row) -> None:
    measured = row.world("auto").run(REQUESTS)

    assert measured.longest_hold <= row.model.max_delay + 1e-9
    assert max(measured.sizes) <= row.model.batch_size


@pytest.mark.heavy
@pytest.mark.parametrize("row", [row for row in OPEN if row.beside is None], ids=lambda row: row.name)
def test_auto_is_near_the_best_of_all_rules(row: Row) -> None:
    """But not beside another model on the same processor: there a delay that nobody gains from here helps the other."""
    auto = row.world("auto").run(REQUESTS).settled().mean

    for policy in ("greedy", "torchserve", "triton", "bentoml"):
        assert auto <= 1.05 * row.world(policy).run(REQUESTS).settled().mean, policy
