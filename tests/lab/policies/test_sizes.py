"""Batches that cost what those of real models cost: `auto` is near the best batch size that a search finds afterwards.

`python -m tests.lab simulate` tries all cells; here are one of each kind.
"""

from functools import partial

import pytest

from tests.lab.policies.loads import Closed
from tests.lab.policies.sizes import CURVES, FEWER, NEAR_ENOUGH, Case, constant, is_fast, is_near, measure
from tests.lab.policies.world import World
from tsctl.daemon.batching.policies.auto import Auto
from tsctl.daemon.models.registering.spec import FIRST

SOME = [
    ("25 n", 1, 1.0, 8),
    ("30 n^1.3", 2, 1.0, 32),
    ("400 n^1.5", 1, 1.0, 128),
    ("2 + 4 n, and 12 for each above 4", 2, 2.0, 32),
    ("10 + 3 n + 0.4 n²", 1, 1.0, 32),
    ("8 + 0.4 n", 1, 1.0, 128),
    ("8 + 0.4 n", 2, 1.0, 8),
    ("8 + 0.4 n", 3, 3.0, 12),
    ("1.5 + 0.05 n", 2, 1.0, 30),
    ("8 + 0.4 n", 4, 4.0, 8),
    ("6 + 24 n", 3, 3.0, 12),
    ("10, and 2 for each above 8", 1, 1.0, 128),
]


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "workers", "cores", "clients"), SOME)
def test_auto_is_as_fast_as_the_best_size(name: str, workers: int, cores: float, clients: int) -> None:
    curve = [each.name for each in CURVES].index(name)

    result = measure(Case(curve, workers, cores, clients))

    assert is_near(result), result


@pytest.mark.heavy
@pytest.mark.parametrize("workers", [2, 4])
def test_clients_of_several_workers_are_served_so_after_a_few_hundred_requests(workers: int) -> None:
    case, load = Case(8, workers, float(workers), 8), Closed(8)  # 8 + 0.4 n
    best = max(case.run(constant(size, size), load, FEWER, size).throughput for size in case.sizes)
    world = World(case.model, partial(Auto, first=FIRST))
    load.start(world)

    soon = world.run(1500).settled(0.2)

    assert soon.throughput >= NEAR_ENOUGH * best


def test_no_client_waits_for_two_batches_where_half_of_them_are_a_batch_that_costs_as_little() -> None:
    case, load = Case(6, 1, 1.0, 8), Closed(8)  # 10 + 3 n + 0.4 n²
    world = World(case.model, partial(Auto, first=FIRST), seed=3)
    load.start(world)

    measured = world.run(3600).settled(1 / 2)

    assert world.traffic.most == 6
    assert measured.percentile(99) < 1.1 * case.run(constant(4, 4), load, 900, 4).percentile(99)


@pytest.mark.heavy
def test_clients_that_workers_cannot_share_evenly_are_answered_at_the_rate_of_the_best_size() -> None:
    result = measure(Case(1, 4, 4.0, 9), seeds=(1,))  # 6 + 24 n

    assert is_fast(result), result


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "workers", "load"), [("30 n^1.3", 1, 0.9), ("6 + 24 n", 2, 0.5), ("8 + 0.4 n", 4, 0.5)]
)
def test_independent_requests_are_answered_as_soon_as_by_the_best_size(name: str, workers: int, load: float) -> None:
    curve = [each.name for each in CURVES].index(name)

    result = measure(Case(curve, workers, float(workers), load=load), seeds=(1,))

    assert is_near(result), result
