"""A pool that has given up one of its places, and serves with the others."""

import pytest

from tests.kit.pool import StubPool
from tsctl.daemon.core.job import Reply
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.daemon.workers.slot import RESTART_LIMIT

LATE = Reply(500, b"late")
BROKEN = LoadFailure("SyntaxError: in net.py", "Traceback …")


def test_a_place_that_is_given_up_is_told_though_another_worker_is_up() -> None:
    bench = StubPool(wanted=2)

    for _ in range(RESTART_LIMIT):
        bench.workers[-1].die()
        bench.clock.advance(60.0 / RESTART_LIMIT)

    assert bench.states == ["UP", "GAVE_UP"]
    assert bench.pool.failure is not None
    assert bench.pool.failure.error == "5 workers exited before their first answer, the last: killed by SIGKILL"


@pytest.mark.parametrize("ends", ["crash", "die", "hang"])
def test_six_requests_that_end_their_workers_end_no_service(ends: str) -> None:
    bench = StubPool(wanted=1)

    for _ in range(6):
        worker = bench.give_batch()
        getattr(worker, ends)(*((LATE,) if ends == "hang" else ()))
        bench.clock.advance(5.1)

    assert bench.states == ["UP"] and bench.pool.failure is None
    worker = bench.give_batch()
    bench.clock.advance(1.0)
    assert worker.answered


def test_workers_that_end_without_work_give_up_though_others_have_ended_with_work() -> None:
    bench = StubPool(wanted=1)
    bench.give_batch().crash()
    bench.clock.advance(0.6)

    for _ in range(RESTART_LIMIT):
        assert bench.states != ["GAVE_UP"]
        bench.workers[-1].crash()
        bench.clock.advance(4.1)

    assert bench.states == ["GAVE_UP"]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        pytest.param(["crash"] * 3, 3, id="they are counted"),
        pytest.param(["crash", "crash", "answer", "crash"], 1, id="from the last answer on"),
        pytest.param(["crash", "crash", "hang"], 2, id="what hung was not answered"),
        pytest.param(["die", "hang", "kill"], 0, id="who was killed has not crashed"),
        pytest.param(["idle crash"] * 3, 0, id="nor who had no work"),
    ],
)
def test_crashes_in_a_row(ends: list[str], expected: int) -> None:
    bench = StubPool(wanted=1)
    for end in ends:
        worker = bench.workers[-1] if end.startswith("idle") else bench.give_batch()
        if end == "answer":
            bench.clock.advance(1.0)
        elif end == "hang":
            worker.hang(LATE)
        else:
            getattr(worker, end.removeprefix("idle "))()
        bench.clock.advance(6.0)

    assert bench.pool.crashes == expected


def test_a_place_whose_worker_ended_with_work_recovers_until_the_next_one_is_up() -> None:
    bench = StubPool(wanted=2)
    bench.give_batch().crash()
    assert (bench.pool.ready, bench.pool.recovering) == (1, 1)

    bench.clock.advance(0.6)
    assert (bench.pool.ready, bench.pool.recovering) == (2, 0)

    bench.workers[-1].crash()
    assert (bench.pool.ready, bench.pool.recovering) == (1, 0)


def test_why_a_place_was_given_up_is_told_until_somebody_tries_again() -> None:
    bench = StubPool(load_time=1.0)
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
