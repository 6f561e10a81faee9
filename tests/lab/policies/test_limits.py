"""Requests that may take only so long, and such of low priority, in simulated traffic."""

from functools import partial

import pytest

from tests.lab.policies.loads import Closed, Poisson
from tests.lab.policies.world import Measured, SimulatedModel, World
from tsctl.daemon.batching.policies.table import make_collector

BUSY = 32 / (0.008 + 0.0004 * 32)  # the most requests a second that full batches of the usual model carry


def run(policy: str, load: Closed | Poisson, model: SimulatedModel, requests: int = 1500) -> Measured:
    world = World(model, partial(make_collector, policy))
    load.start(world)
    return world.run(requests)


@pytest.mark.parametrize("policy", ["auto", "fixed", "greedy"])
def test_every_answer_is_in_time_and_every_request_ends(policy: str) -> None:
    measured = run(policy, Poisson(1.5 * BUSY), SimulatedModel(client_timeout=0.05))

    assert measured.ended >= 1500
    assert measured.expired["queue"] and measured.expired["worker"]
    assert max(latency for _, latency in measured.finished) <= 0.05


@pytest.mark.parametrize("policy", ["auto", "fixed", "greedy"])
def test_nobody_expires_where_there_is_room(policy: str) -> None:
    measured = run(policy, Poisson(0.3 * BUSY), SimulatedModel(client_timeout=0.06))

    assert not measured.expired and len(measured.finished) >= 1500


@pytest.mark.parametrize("policy", ["auto", "fixed"])
def test_a_delay_that_is_longer_than_the_time_there_is_does_no_harm(policy: str) -> None:
    measured = run(policy, Closed(1), SimulatedModel(client_timeout=0.03, max_delay=1.0), requests=200)

    assert not measured.expired


def test_nobody_waits_longer_than_the_queue_timeout() -> None:
    model = SimulatedModel(queue_timeout=0.05)

    measured = run("auto", Poisson(1.5 * BUSY), model)

    longest_batch = (model.a + model.c * model.batch_size) * (1 + model.noise)
    assert measured.expired["queue"] and not measured.expired["worker"]
    # Who is sent ahead has left the queue, and still waits for the batch before.
    assert max(latency for _, latency in measured.finished) <= 0.05 + 2 * longest_batch


def test_low_priority_waits_longer_and_does_not_starve() -> None:
    measured = run("auto", Poisson(0.95 * BUSY), SimulatedModel(low=0.3, batch_size=32), requests=6000)

    low = [latency for _, latency in measured.low]
    assert 0.25 * 6000 < len(low) < 0.35 * 6000
    assert sum(low) / len(low) > 1.03 * measured.mean
    assert max(low) < 4 * 0.02 + 3 * (0.008 + 0.0004 * 32)


def test_priorities_change_nothing_for_all_together() -> None:
    mixed = run("auto", Poisson(0.9 * BUSY), SimulatedModel(low=0.5), requests=3000)
    plain = run("auto", Poisson(0.9 * BUSY), SimulatedModel(), requests=3000)

    assert mixed.mean == pytest.approx(plain.mean, rel=0.02)
    assert mixed.sizes == plain.sizes
