"""Where workers run requests row by row, one that may end its worker is alone in it."""

from typing import Any

from tests.extensions.quarantine.poisoned import SMALL, QuarantinedVersion
from tests.kit.stub import StubRowWorker


class Rowed(QuarantinedVersion):
    """A version in the mode `continuous` with four places a worker, whose rows take a second."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"continuous": True, "batch_size": 4, **settings})

    def worker(self, place: int = 0) -> StubRowWorker:
        worker = self.workers[place]
        assert isinstance(worker, StubRowWorker)
        return worker


def test_rows_whose_worker_died_run_again_and_each_alone_in_its_worker_once_one_has_crashed_it() -> None:
    bench = Rowed(workers=1, retry=True)
    bench.send("a", "b")

    bench.worker().crash()
    bench.clock.advance(0.6)
    bench.send("c")
    bench.clock.advance(10.0)

    assert sorted(bench.sent) == ["a", "a", "b", "b", "c"]
    second = bench.worker(1)
    begun = [(batch.jobs[0].id, batch.sent) for batch in second.batches]
    assert len({sent for name, sent in begun if name != "c"}) == 2  # one after the other
    assert all(reply.status == 200 for _, reply in bench.client.replies)


def test_rows_whose_worker_was_killed_run_again_each_alone_while_a_request_is_known_that_may_end_workers() -> None:
    bench = Rowed(retry=True)
    bench.ask("poison", b"poison")
    bench.worker().crash(retry=False)
    bench.clock.advance(5.0)
    bench.send("a", "b")

    bench.workers[-1].die()
    bench.clock.advance(10.0)

    assert len({batch.sent for batch in bench.workers[-1].batches}) == 2
    assert bench.client.statuses["a"] == bench.client.statuses["b"] == 200


def test_a_request_that_must_be_alone_and_leaves_lets_those_behind_it_go() -> None:
    bench = Rowed(retry=False)
    bench.ask("a", b"poison")
    bench.worker().crash(retry=False)
    bench.clock.advance(0.5)
    bench.ask("b", b"harmless")
    suspect = bench.ask("c", b"poison")
    bench.ask("d", b"another")
    assert bench.sent == ["a", "b"]  # "c" waits until the worker is empty, and "d" behind it

    bench.model.abandon(suspect)
    bench.clock.settle()

    assert bench.sent == ["a", "b", "d"]


def test_a_client_cannot_clear_its_poison_by_cancelling_it() -> None:
    version = Rowed()
    for name in ("one", "two"):
        version.ask(name, SMALL)
        worker = version.workers[-1]
        assert isinstance(worker, StubRowWorker)
        worker.crash(retry=False)
        version.clock.advance(5.0)
        if name == "one":
            again = version.ask("cancelled", SMALL)
            assert again.apart is not None
            version.model.abandon(again)
            version.clock.advance(0.1)

    assert version.quarantine.suspects.refused(version.clock.now()) == 1
