"""A pool whose workers run row by row: which gets the next row, and when there is none."""

from tests.kit.build import make_spec
from tests.kit.client import Client
from tests.kit.clock import FakeClock
from tests.kit.pool import Heard
from tests.kit.stub import StubEngine
from tsctl.daemon.core.job import Batch
from tsctl.daemon.workers.engine import Worker
from tsctl.daemon.workers.rows.in_flight import RowsInFlight
from tsctl.daemon.workers.rows.pool import RowPool


class StubRowPool:
    """A pool of workers with two places each, whose rows end by `end`."""

    def __init__(self, workers: int, places: int = 2) -> None:
        self.clock = FakeClock()
        self.engine = StubEngine(self.clock)
        self.heard = Heard()
        spec = make_spec(mode="continuous", batch_size=places, rows=places)
        self.pool = RowPool(self.engine, spec, self.clock, self.heard, 8)
        self.heard.pool = self.pool
        self.pool.scale(workers)
        self.clock.advance(0.1)
        self._numbers = iter(range(1, 1000))

    def begin(self, *, alone: bool = False) -> Worker:
        worker = self.pool.take_idle(alone)
        job = Client().job("j")
        job.send()
        worker.in_flight.add_batch(Batch(next(self._numbers), [job], "place"))
        return worker

    def end(self, worker: Worker) -> None:
        in_flight = worker.in_flight
        assert isinstance(in_flight, RowsInFlight)
        in_flight.finish_row(next(iter(in_flight.numbers)))
        self.pool.take_back(worker, answered=True)


def test_the_worker_with_the_fewest_rows_gets_the_next() -> None:
    bench = StubRowPool(workers=2)

    taken = [bench.begin() for _ in range(4)]

    assert [taken.count(worker) for worker in bench.engine.workers] == [2, 2]
    assert taken[0] is not taken[1]


def test_a_worker_that_does_not_read_gets_no_row_until_it_does() -> None:
    bench = StubRowPool(workers=2)
    slow, other = bench.engine.workers
    slow.congest(True)
    assert bench.pool.idle == 2
    assert [bench.begin() for _ in range(2)] == [other, other]
    assert bench.pool.idle == 0

    slow.congest(False)

    assert [bench.begin() for _ in range(2)] == [slow, slow]


def test_a_worker_without_room_is_not_offered_when_it_reads_again() -> None:
    bench = StubRowPool(workers=1, places=1)
    worker = bench.begin()

    for congested in (True, False):
        bench.engine.workers[0].congest(congested)

    assert bench.pool.idle == 0
    bench.end(worker)
    assert bench.pool.idle == 1
