"""The simulator confirms queueing theory for greedy and for full batches."""

import math
from statistics import fmean

import pytest

from tests.lab.policies.loads import Closed, Poisson
from tests.lab.policies.rows import MODEL, Row, rate
from tests.lab.policies.world import Measured, SimulatedModel

A, C = MODEL.a, MODEL.c
FEWEST, MOST = 0.0003, 0.0007  # a turnaround is the first plus an exponential of mean the second


def runs(row: Row, policy: str) -> list[Measured]:
    return [row.world(policy, seed).run(4000).settled() for seed in (1, 2, 3, 4, 5)]


@pytest.mark.heavy
@pytest.mark.parametrize("load", [0.15, 0.3, 0.5, 0.7, 0.9])
def test_greedy_under_independent_arrivals_settles_at_a_cycle_of_a_over_one_minus_lambda_c(load: float) -> None:
    arrivals = rate(load)
    measured = runs(Row("", Poisson(arrivals)), "greedy")

    cycle = A / (1 - arrivals * C)
    share = arrivals * C
    latency = 1.5 * cycle + C / 2 * (share + 2) / (1 - share**2)
    assert fmean(run.mean for run in measured) == pytest.approx(latency, rel=0.05)
    p99 = fmean(run.percentile(99) for run in measured)
    assert 2.1 * cycle <= p99 <= 2.9 * cycle


@pytest.mark.heavy
@pytest.mark.parametrize("load", [0.3, 0.5, 0.7])
def test_its_mean_batch_is_the_arrivals_of_a_cycle(load: float) -> None:
    arrivals = rate(load)
    measured = runs(Row("", Poisson(arrivals)), "greedy")

    batch = fmean(size for run in measured for size in run.sizes.elements())
    assert batch == pytest.approx(arrivals * A / (1 - arrivals * C), rel=0.05)


@pytest.mark.heavy
@pytest.mark.parametrize("clients", [4, 8, 16])
def test_greedy_in_a_closed_loop_pays_the_fixed_cost_twice(clients: int) -> None:
    """Those that come back first are sent alone, and all others wait for them."""
    measured = runs(Row("", Closed(clients)), "greedy")

    assert fmean(run.throughput for run in measured) == pytest.approx(clients / (2 * A + C * clients), rel=0.05)


@pytest.mark.heavy
@pytest.mark.parametrize("clients", [2, 4, 8, 16])
def test_auto_in_a_closed_loop_reaches_full_batches(clients: int) -> None:
    measured = runs(Row("", Closed(clients)), "auto")

    last_back = FEWEST + MOST * sum(1 / k for k in range(1, clients + 1))  # E[max] of exponentials
    full = clients / (A + C * clients + last_back)
    assert fmean(run.throughput for run in measured) == pytest.approx(full, rel=0.02)


@pytest.mark.heavy
@pytest.mark.parametrize(("load", "stable"), [(0.98, True), (1.1, False)])
def test_a_worker_is_stable_only_up_to_full_batches(load: float, stable: bool) -> None:
    settled = Row("", Poisson(rate(load))).world("greedy").run(12_000).settled()

    assert (settled.mean < 0.1) is stable


def test_without_chance_the_arithmetic_is_exact() -> None:
    model = SimulatedModel(noise=0.0)
    row = Row("", Closed(1, lambda world: 0.001), model)
    measured = row.world("greedy").run(100)

    assert measured.throughput == pytest.approx(1 / (A + C + 0.001))
    assert measured.percentile(99) == pytest.approx(A + C)
    assert math.isclose(measured.mean, A + C)


def test_a_seed_is_a_run() -> None:
    row = Row("", Poisson(rate(0.5)))
    first, same, other = (row.world("auto", seed).run(500).finished for seed in (7, 7, 8))

    assert first == same != other
