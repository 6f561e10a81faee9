"""A version with sequences: its requests, its workers' ends, and its clients."""

import pytest

from tests.extensions.sequences.stateful import Stateful
from tests.kit.clients import FakeClient
from tsctl.daemon.api.management.control import worker_of
from tsctl.daemon.core.client import ShareHolder
from tsctl.daemon.core.errors import QueueFull
from tsctl.daemon.core.job import Reply
from tsctl.daemon.extensions.sequences.marks import SequenceHeaders
from tsctl.daemon.extensions.sequences.table import TooManySequences
from tsctl.daemon.models.request_watcher import RequestFacts


def test_who_would_serve_it_elsewhere_is_told_that_its_workers_keep_states() -> None:
    assert worker_of(Stateful().model, {})["anyWorker"] is False


def test_a_request_counts_in_the_share_of_its_key() -> None:
    bench = Stateful()
    job = bench.client.job("a1")

    [watcher] = bench.model.watchers
    watcher.watch(job, RequestFacts("POST", "/predictions/m", 0.0, FakeClient("c"), "192.0.2.7:4711", None))

    assert job.client == ShareHolder("c", known=True)


def test_a_request_without_an_id_begins_a_sequence_whose_id_the_client_is_told() -> None:
    bench = Stateful()

    job = bench.ask("x")
    bench.clock.advance(1.0)

    headers = dict(bench.client.reply("x").headers)
    assert headers["ts_request_sequence_id"].startswith("ts-seq-")
    assert ("ts_request_sequence_id", headers["ts_request_sequence_id"]) in job.headers
    assert ("ts_request_sequence_start", "true") in job.headers


def test_a_handler_ends_sequences_by_a_header_of_its_answer() -> None:
    bench = Stateful()
    bench.engine.answer = lambda job: Reply(200, b"", headers=[("ts_request_sequence_end", "a; b")])

    bench.send("a1", "b1", "c1")
    bench.clock.advance(10.0)

    assert len(bench.sequences) == 1


def test_the_limit_of_the_queue_holds_and_opens_no_sequence() -> None:
    bench = Stateful(queue_jobs=1, batch_size=1)
    bench.one("a1")
    bench.one("b1")

    with pytest.raises(QueueFull):
        bench.one("c1")

    assert len(bench.sequences) == 2


def test_the_handlers_description_needs_no_sequence() -> None:
    bench = Stateful()
    bench.send("a1")
    bench.submit("D", exclusive=True)

    bench.clock.advance(10.0)

    assert bench.sent == ["a1", "D"]
    assert len(bench.sequences) == 1


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
    assert bench.model.idle


def test_its_requests_do_not_travel_in_batches() -> None:
    assert not Stateful(workers=0).model.dispatcher.sends_batches
