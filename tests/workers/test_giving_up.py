"""A pool that has given up one of its places, and serves with the others."""

from daemon.workers.engine import LoadFailure
from daemon.workers.slot import RESTART_LIMIT
from tests.workers.pools import Bench

BROKEN = LoadFailure("SyntaxError: in net.py", "Traceback …")


def test_a_place_that_is_given_up_is_told_though_another_worker_is_up() -> None:
    bench = Bench(wanted=2)

    for _ in range(RESTART_LIMIT):
        bench.workers[-1].die()
        bench.clock.advance(60.0 / RESTART_LIMIT)

    assert bench.states == ["UP", "GAVE_UP"]
    assert bench.pool.failure is not None
    assert bench.pool.failure.error == "5 workers exited before their first answer, the last: killed by SIGKILL"


def test_why_a_place_was_given_up_is_told_until_somebody_tries_again() -> None:
    bench = Bench(load_time=1.0)
    bench.engine.load_failure = BROKEN
    bench.pool.scale(1)
    bench.clock.advance(0.5)
    bench.pool.scale(2)
    bench.clock.advance(0.6)
    bench.engine.load_failure = None
    bench.clock.advance(1.0)

    assert bench.states == ["GAVE_UP", "UP"]
    assert bench.pool.failure is BROKEN

    bench.pool.scale(2)
    assert bench.pool.failure is None
