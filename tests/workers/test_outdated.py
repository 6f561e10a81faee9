"""A worker that would be better if it were started now is replaced, and no request notices."""

from tests.kit.pool import StubPool
from tsctl.daemon.workers.state import WorkerState


def test_an_outdated_worker_ends_its_batch_and_another_one_takes_its_place() -> None:
    bench = StubPool(wanted=1)
    old = bench.give_batch()

    bench.pool.outdated(old)
    bench.clock.advance(0.01)
    _, new = bench.workers

    assert (bench.states, bench.pool.take_idle()) == (["UP"], new)
    bench.clock.advance(1.0)
    assert [outcome.reply is not None for outcome in bench.heard.outcomes] == [True]
    assert old.state is WorkerState.EXITED


def test_a_worker_that_leaves_already_is_not_replaced_for_being_outdated() -> None:
    bench = StubPool(wanted=1)
    (worker,) = bench.workers
    bench.pool.scale(0)

    bench.pool.outdated(worker)

    assert bench.states == []
