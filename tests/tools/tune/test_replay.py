"""A setting under a load, in the simulator: what clients see."""

import pytest

from daemon.tools.tune.candidates import Candidate
from daemon.tools.tune.load import LoadPlan, Turnarounds
from daemon.tools.tune.replay import Overhead, replay
from daemon.tools.tune.times import Curve, PlacementTimes

A, C = 0.008, 0.0004
TIMES = PlacementTimes(1, 1, {1: Curve({size: [A + C * size] for size in (1, 32)})})
NOTHING = Overhead()
AT_ONCE = Turnarounds([(0.0, 0.0)], [1.0])


def setting(batch_size: int, max_delay: float = 0.02, policy: str = "auto") -> Candidate:
    return Candidate(1, 1, batch_size, max_delay, policy)


def test_a_lone_client_sees_the_time_of_a_batch_of_one() -> None:
    point = replay(setting(32), TIMES, LoadPlan(text="", clients=1, turnarounds=AT_ONCE), NOTHING, 500)

    assert (point.p50, point.p99) == pytest.approx((A + C, A + C))
    assert point.throughput == pytest.approx(1 / (A + C))
    assert point.mean_batch == 1.0


def test_as_many_clients_as_fit_a_batch_see_the_time_of_that_batch() -> None:
    point = replay(setting(8, policy="fixed"), TIMES, LoadPlan(text="", clients=8, turnarounds=AT_ONCE), NOTHING, 2000)

    assert point.p50 == pytest.approx(A + 8 * C)
    assert point.throughput == pytest.approx(8 / (A + 8 * C), rel=0.01)
    assert point.capacity == pytest.approx(8 / (A + 8 * C))


def test_what_a_request_costs_outside_the_model_is_in_its_latency() -> None:
    plan = LoadPlan(text="", clients=1)

    point = replay(setting(1), TIMES, plan, Overhead(latency=0.001, cost=0.0005), 500)

    assert point.p50 == pytest.approx(A + C + 0.0015)
    assert point.throughput == pytest.approx(1 / (A + C + 0.0015))


def test_requests_wait_for_each_other_on_their_way() -> None:
    together = replay(setting(8, policy="fixed"), TIMES, LoadPlan(text="", clients=8), Overhead(cost=0.001), 2000)

    assert together.p99 >= A + 8 * C + 8 * 0.0005


def test_recorded_requests_come_at_their_moments_whatever_the_server_does() -> None:
    plan = LoadPlan(text="", times=[index * 0.05 for index in range(300)])

    point = replay(setting(8), TIMES, plan, NOTHING, 10_000)

    assert point.keeps_up
    assert point.throughput == pytest.approx(20, rel=0.01)
    assert point.p99 == pytest.approx(A + C)


def test_a_setting_that_is_too_slow_for_its_load_falls_behind() -> None:
    plan = LoadPlan(text="", rate=200.0)

    slow, fast = (replay(setting(size), TIMES, plan, NOTHING, 2000) for size in (1, 32))

    assert not slow.keeps_up
    assert fast.keeps_up
    assert slow.p99 > 1.0 > fast.p99
