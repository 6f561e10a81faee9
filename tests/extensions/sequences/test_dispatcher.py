"""A version with sequences: its requests, its workers' ends, and its clients."""

from typing import Any

import pytest

from tests.kit.version import StubVersion
from tsctl.daemon.api.management.control import worker_of
from tsctl.daemon.core.errors import QueueFull
from tsctl.daemon.core.job import Job
from tsctl.daemon.extensions.sequences.dispatcher import SequenceDispatcher
from tsctl.daemon.extensions.sequences.marks import USUAL, SequenceHeaders
from tsctl.daemon.extensions.sequences.service import open_sequences, sequences_of
from tsctl.daemon.extensions.sequences.table import SequenceBroken, Sequences, TooManySequences
from tsctl.daemon.workers.engine import Worker


class Stateful(StubVersion):
    """A version with sequences; `send("a1", "b1")` sends a request of the sequence `a`, and one of `b`."""

    def __init__(self, **settings: Any) -> None:
        asked = {"sequences": True, "batch_size": 4, "max_sequences": 8, "sequence_jobs": 8, "workers": 1} | settings
        workers, names = asked.pop("workers"), asked.pop("sequence_headers", USUAL)
        super().__init__(workers=0, dispatcher=SequenceDispatcher, **asked)
        open_sequences(self.model, names)
        if workers:
            self.model.scale(workers, workers)
            self.clock.settle()

    @property
    def sequences(self) -> Sequences[Worker]:
        found = sequences_of(self.model)
        assert found is not None
        return found

    def send(self, *names: str, **further: Any) -> list[Job]:
        return [self.one(name, settle=False, **further) for name in names] + self._settled()

    def one(self, name: str, *, settle: bool = True, start: bool = False, end: bool = False, **further: Any) -> Job:
        headers = [("ts_request_sequence_id", name[0])]
        headers += [("ts_request_sequence_start", "true")] * start + [("ts_request_sequence_end", "true")] * end
        job = self.submit(name, headers=headers, **further)
        if settle:
            self.clock.settle()
        return job

    def _settled(self) -> list[Job]:
        self.clock.settle()
        return []


def test_what_came_while_the_worker_was_busy_runs_together() -> None:
    bench = Stateful()

    bench.send("a1", "b1")
    bench.send("b2", "c1", "a2", "a3")
    bench.clock.advance(10.0)

    assert bench.batches == ["a1 b1", "a2 b2 c1", "a3"]
    assert bench.dispatcher.reasons == {"sequence": 3}


def test_who_would_serve_it_elsewhere_is_told_that_its_workers_keep_states() -> None:
    assert worker_of(Stateful().model, {})["anyWorker"] is False


def test_the_end_of_a_worker_ends_its_sequences_with_an_error_that_says_so() -> None:
    bench = Stateful(retry=True)
    bench.send("a1", "a2")

    bench.workers[0].crash()
    bench.clock.advance(10.0)

    assert bench.client.reply("a1").status == 500
    reply = bench.client.reply("a2")
    assert reply.status == 409
    assert b'The state of the sequence "a" is lost: its worker has ended (it exited with code 7)' in reply.body
    with pytest.raises(SequenceBroken):
        bench.one("a3")
    bench.one("a4", start=True)
    bench.clock.advance(1.0)
    assert bench.client.reply("a4").status == 200


def test_a_worker_that_is_scaled_away_answers_first_and_then_its_sequences_are_broken() -> None:
    bench = Stateful(workers=2)
    bench.send("a1", "b1")

    bench.model.scale(1, 1)
    bench.clock.advance(2.0)

    assert {name for name, reply in bench.client.replies if reply.status == 200} == {"a1", "b1"}
    bench.one("a2")
    with pytest.raises(SequenceBroken, match="its worker has ended"):
        bench.one("b2")


def test_a_request_without_an_id_begins_a_sequence_whose_id_the_client_is_told() -> None:
    bench = Stateful()

    job = bench.ask("x")
    bench.clock.advance(1.0)

    headers = dict(bench.client.reply("x").headers)
    assert headers["ts_request_sequence_id"].startswith("ts-seq-")
    assert ("ts_request_sequence_id", headers["ts_request_sequence_id"]) in job.headers
    assert ("ts_request_sequence_start", "true") in job.headers


def test_the_limits_of_sequences_are_those_of_the_settings() -> None:
    bench = Stateful(batch_size=1, max_sequences=2, sequence_jobs=1)
    bench.send("a1", "b1")

    with pytest.raises(TooManySequences):
        bench.one("c1")
    with pytest.raises(TooManySequences, match="1 requests of the sequence"):
        bench.one("b2")


def test_there_is_room_for_a_batch_at_each_worker() -> None:
    bench = Stateful(batch_size=2, max_sequences=1, workers=2)

    bench.send("a1", "b1", "c1", "d1")

    with pytest.raises(TooManySequences):
        bench.one("e1")


def test_the_limit_of_the_queue_holds_and_opens_no_sequence() -> None:
    bench = Stateful(queue_jobs=1, batch_size=1)
    bench.one("a1")
    bench.one("b1")

    with pytest.raises(QueueFull):
        bench.one("c1")

    assert len(bench.sequences) == 2


def test_a_request_that_is_too_old_is_answered_and_its_sequence_goes_on() -> None:
    bench = Stateful()
    bench.send("a1")
    bench.one("a2", seconds=0.2)
    bench.one("a3")

    bench.clock.advance(10.0)

    assert bench.client.reply("a2").status == 504
    assert bench.sent == ["a1", "a3"]


def test_the_handlers_description_needs_no_sequence() -> None:
    bench = Stateful()
    bench.send("a1")
    bench.submit("D", exclusive=True)

    bench.clock.advance(10.0)

    assert bench.sent == ["a1", "D"]
    assert len(bench.sequences) == 1


def test_a_version_that_stops_answers_what_waits() -> None:
    bench = Stateful()
    bench.send("a1", "a2")

    bench.model.stop()
    bench.model.refuse_waiting()
    bench.clock.advance(10.0)

    assert bench.client.reply("a1").status == 200
    assert bench.client.reply("a2").status == 503


def test_rows_of_a_sequence_begin_in_order_and_overlap_at_their_worker() -> None:
    bench = Stateful(continuous=True, batch_size=2, workers=2)

    bench.send("a1", "a2", "a3", "a4", "a5", "b1")
    assert sorted(bench.sent) == ["a1", "a2", "a3", "a4", "b1"]  # four places each: twice the batch size

    bench.clock.advance(1.0)
    assert [job.id for batch in bench.workers[0].batches for job in batch.jobs] == ["a1", "a2", "a3", "a4", "a5"]


@pytest.mark.parametrize(("size", "places"), [(1, 2), (8, 16)])
def test_a_worker_that_starts_after_a_change_of_the_batch_size_has_twice_the_places(size: int, places: int) -> None:
    bench = Stateful(continuous=True)
    bench.model.change(bench.model.settings.changed({"batch_size": size}, "set"))

    bench.workers[0].die()
    bench.clock.advance(10.0)

    assert bench.workers[1].spec.rows == bench.workers[1].in_flight.capacity == places
    assert bench.model.pool.idle == places


def test_the_headers_of_sequences_may_have_other_names() -> None:
    names = SequenceHeaders("X-Dialogue", "X-Begin", "X-End")
    bench = Stateful(batch_size=1, max_sequences=1, sequence_headers=names)
    for name in ("a1", "a2"):
        bench.submit(name, headers=[("x-dialogue", "a"), ("ts_request_sequence_id", name)])

    with pytest.raises(TooManySequences, match="end one, with the header X-End: true"):
        bench.submit("b1", headers=[("X-Dialogue", "b")])
    bench.clock.settle()
    bench.workers[0].crash()
    bench.clock.advance(10.0)
    assert b"with the header X-Begin: true" in bench.client.reply("a2").body


def test_a_client_that_ends_no_sequence_leaves_room_for_others() -> None:
    bench = Stateful(max_sequences=4)
    for name in ("a1", "b1", "c1", "d1"):
        bench.one(name, client="hog")
        bench.clock.advance(1.0)

    bench.one("e1", client="guest")
    bench.clock.advance(1.0)

    assert bench.client.reply("e1").status == 200
    with pytest.raises(SequenceBroken, match="another client needed a place"):
        bench.one("a2", client="hog")
    bench.one("b2", client="hog")


def test_a_client_that_is_refused_by_the_queue_displaces_nobody() -> None:
    bench = Stateful(max_sequences=2, queue_jobs=1)
    for name in ("a1", "b1"):
        bench.one(name, client="hog")
        bench.clock.advance(1.0)
    bench.one("a2", client="hog")
    bench.one("a3", client="hog", settle=False)

    with pytest.raises(QueueFull):
        bench.one("c1", client="guest")

    bench.clock.advance(5.0)
    bench.one("b2", client="hog")


def test_its_requests_do_not_travel_in_batches() -> None:
    assert not Stateful(workers=0).model.dispatcher.sends_batches
