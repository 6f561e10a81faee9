"""The predicted wait, against the simulator and against theory."""

import math

import pytest

from tests.lab.policies.loads import Poisson
from tests.lab.policies.world import SimulatedModel, World
from tsctl.daemon.batching.policies.table import Greedy
from tsctl.daemon.extensions.scaling.facts import BatchModel, ScalingFacts
from tsctl.daemon.extensions.scaling.rule import expected_wait, growing_wait, observed_wait

SHARED = SimulatedModel(a=0.08, c=0.02, batch_size=4)
SINGLE = SimulatedModel(a=0.1, c=0.0, batch_size=1)


def batches_of(model: SimulatedModel) -> BatchModel:
    return BatchModel(per_batch=model.a, per_job=model.c, size=model.batch_size)


def simulated_wait(model: SimulatedModel, workers: int, rate: float, requests: int) -> float:
    """Return the mean seconds that a request waits for a worker."""
    world = World(
        SimulatedModel(a=model.a, c=model.c, batch_size=model.batch_size, workers=workers), lambda n, *_: Greedy(n)
    )
    Poisson(rate).start(world)
    measured = world.run(requests)
    batches = batches_of(model)
    running = sum(count * size * batches.seconds(size) for size, count in measured.sizes.items())
    return measured.mean - running / sum(count * size for size, count in measured.sizes.items())


@pytest.mark.heavy
@pytest.mark.parametrize("load", [0.3, 0.5, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("model", [SHARED, SINGLE], ids=["batches of 4", "one by one"])
def test_the_predicted_wait_is_near_the_simulated_one(model: SimulatedModel, workers: int, load: float) -> None:
    batches = batches_of(model)
    rate = load * batches.capacity(workers)
    wait, predicted = simulated_wait(model, workers, rate, 6000), expected_wait(rate, batches, workers)

    assert 0.7 * wait - 0.002 <= predicted <= 1.4 * wait + 0.002


@pytest.mark.parametrize("load", [0.2, 0.5, 0.9])
def test_one_worker_without_batches_is_a_queue_whose_wait_is_known(load: float) -> None:
    known = load / (2 * (1 - load)) * 0.1  # M/D/1, Pollaczek and Khinchine

    assert expected_wait(load * 10, batches_of(SINGLE), 1) == pytest.approx(known)


def test_workers_that_cannot_keep_up_are_waited_for_forever() -> None:
    assert expected_wait(25.0, batches_of(SHARED), 1) == math.inf
    assert expected_wait(1.0, batches_of(SHARED), 0) == math.inf


def test_more_workers_never_wait_longer() -> None:
    waits = [expected_wait(20.0, batches_of(SHARED), workers) for workers in range(1, 9)]

    assert waits == sorted(waits, reverse=True)


def facts(**changes: float) -> ScalingFacts:
    values = {"rate": 20.0, "arrivals": 100, "observed": 5.0} | changes
    return ScalingFacts(target=0.1, least=1, most=4, wanted=2, ready=2, batches=batches_of(SHARED), **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"waiting": 2.0}, 0.1, id="Little's law: two wait in the mean, twenty arrive a second"),
        pytest.param({"waiting": 2.0, "rate": 0.0}, 0.2, id="a queue without arrivals takes as long as its batches"),
        pytest.param({"waiting": 2.0, "trend": -2.0}, 0.0, id="a queue that shrinks is gone"),
        pytest.param({"waiting": 2.0, "trend": 5.0}, 0.1, id="that it grows is told by the arrivals"),
        pytest.param({"waiting": 2.0, "observed": 0.0}, 0.0, id="nothing was observed yet"),
    ],
)
def test_the_wait_that_was_observed(changes: dict[str, float], expected: float) -> None:
    assert observed_wait(facts(**changes), 2) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"rate": 100.0, "arrivals": 400}, 1.6, id="twice too much for 2 s, less a tenth for chance"),
        pytest.param({"rate": 100.0, "arrivals": 400, "startup": 5.0}, 4.0, id="as long as a worker takes to start"),
        pytest.param({"rate": 52.0, "arrivals": 400}, 0.0, id="a little more may be chance"),
        pytest.param({"arrivals": 0, "rate": 0.0}, 0.0, id="without arrivals"),
    ],
)
def test_the_wait_that_grows(changes: dict[str, float], expected: float) -> None:
    assert growing_wait(facts(**changes), 2) == pytest.approx(expected)
