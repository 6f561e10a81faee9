"""A version whose workers run requests row by row: places, cancellation, what is late, and what must be alone."""

from typing import Any

import pytest

from tests.kit.stub import StubRowWorker
from tests.kit.version import StubVersion
from tsctl.daemon.core.job import Reply


class Rowed(StubVersion):
    """A version in the mode `continuous` with four places a worker, whose rows take a second."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"continuous": True, "batch_size": 4, **settings})

    def worker(self, place: int = 0) -> StubRowWorker:
        worker = self.workers[place]
        assert isinstance(worker, StubRowWorker)
        return worker


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


@pytest.mark.parametrize("size", [1, 8])
def test_a_worker_that_starts_after_a_change_of_the_batch_size_has_the_places_of_the_new_one(size: int) -> None:
    bench = Rowed()
    bench.model.change(bench.model.settings.changed({"batch_size": size}, "set"))

    bench.worker().die()
    bench.clock.advance(10.0)

    assert bench.worker(1).spec.rows == bench.worker(1).in_flight.capacity == size
    assert bench.model.pool.idle == size
