"""The rule on a virtual clock: it follows the traffic, stays within the range, and comes to rest."""

import pytest

from tests.extensions.scaling.simulation.run import MODEL, ScalingRun, capacity_of, run
from tests.extensions.scaling.simulation.traffic import Scenario, Varying, bursts, steps

CAPACITY = capacity_of(MODEL)


def constant(load: float, seconds: float = 900.0) -> Scenario:
    """Return arrivals that `load` workers would just answer."""
    return Scenario("constant", Varying(lambda _: load * CAPACITY, load * CAPACITY), seconds)


def step(low: float, high: float) -> Scenario:
    """Return arrivals that rise after a minute, and fall after five."""
    rate = steps([(0.0, low * CAPACITY), (60.0, high * CAPACITY), (360.0, low * CAPACITY)])
    return Scenario("step", Varying(rate, high * CAPACITY), 900.0)


@pytest.mark.slow
@pytest.mark.parametrize("least", [1, 2])
@pytest.mark.parametrize("most", [2, 3])
def test_the_number_stays_within_the_range(least: int, most: int) -> None:
    found = run(step(0.2, 3.5), least=least, most=most)

    assert (min(found.numbers), max(found.numbers)) == (least, most)


@pytest.mark.slow
def test_a_step_gets_its_workers_soon_and_they_are_taken_away_again() -> None:
    found = run(step(0.2, 2.5))

    assert max(found.numbers[60:90]) >= 3, "within half a minute, in which each worker takes five seconds to start"
    assert found.numbers[-1] == 1
    assert len(found.changes) <= 8


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("load", [0.6, 0.8, 1.0, 1.8, 2.7])
def test_constant_load_brings_the_number_to_rest(load: float, seed: int) -> None:
    found = run(constant(load, 1800.0), seed=seed)

    assert len(found.changes) <= 6, [(change.at, change.after, change.reason) for change in found.changes]
    assert len([change for change in found.changes if change.at > 900.0]) <= 2


@pytest.mark.heavy
@pytest.mark.parametrize("load", [0.6, 1.4, 2.2])
def test_the_wait_is_kept_near_the_target_with_few_workers(load: float) -> None:
    found = run(constant(load, 1800.0))
    fixed = {workers: run(constant(load, 1800.0), workers) for workers in (1, 2, 3, 4)}
    enough = next(workers for workers, other in fixed.items() if mean_wait(other) <= 0.1)

    assert found.worker_seconds <= (enough + 1) * 1800.0
    assert found.percentile(50) <= fixed[enough].percentile(50) + 0.1


@pytest.mark.slow
def test_bursts_that_come_again_soon_keep_their_workers() -> None:
    load = Varying(bursts(0.4 * CAPACITY, 3.0 * CAPACITY, 10.0, 120.0), 3.0 * CAPACITY)
    found = run(Scenario("bursts", load, 1200.0))

    assert len(found.changes) <= 11
    assert min(found.numbers[300:]) >= 2


def mean_wait(found: ScalingRun) -> float:
    """Return the mean time of a request without that of a full batch: less than it waited."""
    return sum(found.latencies) / len(found.latencies) - MODEL.a - MODEL.c * MODEL.batch_size
