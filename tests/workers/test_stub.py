"""The stub keeps the contract of the interface: its order of events is that of a real worker."""

import pytest

from tests.kit.build import make_spec
from tests.kit.stub import StubEngine, StubWorker
from tests.kit.worker import LoneWorker
from tsctl.daemon.core.job import Fate
from tsctl.daemon.workers.engine import LoadFailure
from tsctl.daemon.workers.state import WorkerState


class LoneStub(LoneWorker[StubWorker]):
    """A stub worker whose batches take a tenth of a second for each request."""

    def __init__(self, *, load_time: float = 0.0, failure: LoadFailure | None = None) -> None:
        super().__init__()
        engine = StubEngine(self.clock, load_time=load_time, batch_time=lambda size: 0.1 * size, load_failure=failure)
        self.worker = engine.start_worker(make_spec(threads=3), self.log, self.log)


def test_loading_takes_its_time() -> None:
    bench = LoneStub(load_time=2.0)
    bench.clock.advance(1.9)
    assert bench.log.events == []

    bench.clock.advance(0.1)

    assert bench.log.events == ["loaded"]
    assert bench.worker.state is WorkerState.READY and bench.worker.threads == 3


def test_a_load_failure_is_told_and_then_the_exit() -> None:
    bench = LoneStub(failure=LoadFailure("ImportError: no module named x"))

    bench.clock.settle()

    assert bench.log.events == ["load failed: ImportError: no module named x", "exited: ImportError: no module named x"]
    assert bench.log.exits[0].code == 3


def test_a_batch_takes_its_time_and_echoes() -> None:
    bench = LoneStub()
    bench.clock.settle()

    bench.predict(1, "01")
    assert bench.worker.in_flight and not bench.worker.answered
    bench.clock.advance(0.2)

    assert bench.log.events == ["loaded", "ended 1 after 0.2"]
    assert [outcome.reply and outcome.reply.body for outcome in bench.log.outcomes] == [b"0", b"1"]
    assert not bench.worker.in_flight and bench.worker.answered


def test_an_idle_worker_leaves_when_drained() -> None:
    bench = LoneStub()
    bench.clock.settle()

    bench.worker.drain(grace=1.0)

    assert bench.log.events == ["loaded", "exited: stopped"]
    assert bench.worker.state is WorkerState.EXITED


def test_a_busy_worker_finishes_before_it_leaves() -> None:
    bench = LoneStub()
    bench.clock.settle()
    bench.predict(1, "0")

    bench.worker.drain(grace=1.0)
    assert bench.worker.state is WorkerState.DRAINING
    bench.clock.advance(0.1)

    assert bench.log.events == ["loaded", "ended 1 after 0.1", "exited: stopped"]


@pytest.mark.parametrize("retry", [True, False])
def test_a_worker_that_dies_first_returns_its_batch(retry: bool) -> None:
    bench = LoneStub()
    bench.clock.settle()
    bench.predict(1, "0")

    bench.worker.die("killed by SIGSEGV", retry=retry)
    bench.clock.advance(10.0)

    assert bench.log.events == ["loaded", "ended 1 after 0", "exited: killed by SIGSEGV"]
    (outcome,) = bench.log.outcomes
    assert (outcome.reply, outcome.fate, outcome.retry, outcome.reason) == (None, Fate.LOST, retry, "killed by SIGSEGV")
    assert not bench.worker.answered


def test_a_worker_dies_once() -> None:
    bench = LoneStub(load_time=1.0)

    bench.worker.kill()
    bench.worker.kill()
    bench.clock.advance(5.0)

    assert bench.log.events == ["exited: it was stopped"]


def test_a_worker_says_its_state() -> None:
    bench = LoneStub()
    assert repr(bench.worker) == "<StubWorker 1 STARTING>"

    bench.clock.settle()
    bench.predict(1, "0")
    assert repr(bench.worker) == "<StubWorker 1 READY busy>"
