"""A version whose workers run requests row by row: places, cancellation, what is late, and what must be alone."""

from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.core.job import Reply
from tsctl.daemon.workers.stub import StubRowWorker


class Rowed(StubVersion):
    """A version in the mode `continuous` with four places a worker, whose rows take a second."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"continuous": True, "batch_size": 4, **settings})

    def worker(self, place: int = 0) -> StubRowWorker:
        worker = self.workers[place]
        assert isinstance(worker, StubRowWorker)
        return worker


def test_a_request_goes_to_a_worker_that_runs_others_as_long_as_there_is_a_place() -> None:
    bench = Rowed()

    bench.send("a", "b")
    bench.clock.advance(0.5)
    bench.send("c", "d", "e")

    assert bench.sent == ["a", "b", "c", "d"]
    bench.clock.advance(0.5)
    assert bench.sent == ["a", "b", "c", "d", "e"]
    assert bench.dispatcher.reasons == {"place": 5}


def test_the_worker_with_the_fewest_gets_the_next() -> None:
    bench = Rowed(workers=2)

    bench.send("a", "b", "c")

    assert [len(worker.in_flight) for worker in bench.workers] == [2, 1]


def test_a_row_whose_deadline_has_passed_is_not_answered_again_when_it_is_late() -> None:
    bench = Rowed(batch_size=1)
    job = bench.ask("a", seconds=0.3)
    bench.clock.advance(0.4)

    bench.dispatcher.late(bench.worker(), job, Reply(500, b"late"))
    bench.clock.advance(1.0)

    assert [reply.status for _, reply in bench.client.replies] == [504]


def test_a_late_row_is_answered_once_and_keeps_its_place_until_it_ends() -> None:
    bench = Rowed(batch_size=1)
    [a, _] = bench.send("a", "b")

    bench.dispatcher.late(bench.worker(), a, Reply(500, b"late"))
    bench.clock.settle()

    assert bench.client.reply("a").body == b"late"
    assert bench.sent == ["a"]
    bench.clock.advance(1.0)
    assert bench.sent == ["a", "b"]
    assert bench.client.reply("a").body == b"late"


def test_rows_whose_worker_was_killed_run_again_together() -> None:
    bench = Rowed(retry=True)
    bench.send("a", "b")

    bench.workers[-1].die()
    bench.clock.advance(10.0)

    assert len({batch.sent for batch in bench.workers[-1].batches}) == 1
    assert bench.client.statuses["a"] == bench.client.statuses["b"] == 200


@pytest.mark.parametrize("size", [1, 8])
def test_a_worker_that_starts_after_a_change_of_the_batch_size_has_the_places_of_the_new_one(size: int) -> None:
    bench = Rowed()
    bench.model.change(bench.model.settings.changed({"batch_size": size}, "set"))

    bench.worker().die()
    bench.clock.advance(10.0)

    assert bench.worker(1).spec.rows == bench.worker(1).in_flight.capacity == size
    assert bench.model.pool.idle == size


def test_an_asynchronous_worker_has_as_many_places_as_its_queue() -> None:
    bench = StubVersion(asynchronous=True, queue_jobs=3)

    bench.send("a", "b", "c")
    bench.send("d")

    assert bench.sent == ["a", "b", "c"]
