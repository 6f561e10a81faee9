"""Answers in pieces: the client gets each as it comes, and what goes wrong after the first is visible."""

import asyncio
from pathlib import Path

import pytest

from tests.api.house import House
from tsctl.daemon.core.job import Piece, Reply
from tsctl.daemon.http.bounds.sending import PIECE
from tsctl.daemon.workers.stub import StubWorker


@pytest.fixture
def house(tmp_path: Path) -> House:
    house = House(tmp_path)
    house.engine.batch_time = lambda _size: 10.0
    house.engine.answer = lambda _job: Reply(200, b"last")
    asyncio.run(house.serve("m", config="retry: true"))
    return house


def worker(house: House) -> StubWorker:
    return house.engine.workers[0]


def test_status_and_headers_are_those_of_the_first_piece(house: House) -> None:
    peer = house.send("POST", "/predictions/m")
    job = worker(house).batches[0].jobs[0]
    job.stream(Reply(206, b"a", "Some", [("Content-Type", "text/plain")]))
    job.stream(Reply(200, b"b", headers=[("Content-Type", "text/html")]))

    house.clock.advance(10.0)

    (answer,) = peer.answers
    assert (answer.status, answer.headers["content-type"], answer.body) == (206, "text/plain", b"ablast")


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(None, id="a piece"),
        pytest.param(Reply(500, b"boom"), id="the last one"),
        pytest.param(Reply(503, b"boom", error="InternalServerException"), id="a failure"),
    ],
)
def test_an_error_after_the_first_piece_cuts_the_connection(house: House, last: Reply | None) -> None:
    """TorchServe's handlers end an answer so: send_intermediate_predict_response(…, code=500, …)."""
    peer = house.send("POST", "/predictions/m")
    job, flow = worker(house).batches[0].jobs[0], Flow()
    job.stream(Piece(200, b"first", flow=flow))
    if last is not None:
        house.engine.answer = lambda _job: last
    else:
        job.stream(Piece(500, b"boom", flow=flow))
        assert "refused" in flow.told

    house.clock.advance(10.0)

    assert peer.transport.aborted and not peer.transport.written.endswith(b"0\r\n\r\n")
    assert b"boom" not in peer.transport.written


def test_a_stream_whose_worker_dies_is_cut_and_not_run_again(house: House) -> None:
    peer = house.send("POST", "/predictions/m")
    worker(house).stream(b"first")

    worker(house).die()
    house.clock.advance(60.0)

    assert peer.transport.aborted
    assert sum(len(each.batches) for each in house.engine.workers) == 1


def test_pieces_for_a_client_that_has_left_go_nowhere(house: House) -> None:
    peer = house.send("POST", "/predictions/m")
    worker(house).stream(b"first")
    before = bytes(peer.transport.written)
    peer.transport.lose()
    house.clock.settle()

    worker(house).stream(b"second")
    house.clock.advance(10.0)

    assert bytes(peer.transport.written) == before
    assert house.registry.find("m").idle


class Flow:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.wanted = False
        self.told: list[str] = []

    def drained(self) -> None:
        self.told.append("drained")

    def refuse(self) -> None:
        self.told.append("refused")


def test_a_flow_is_told_when_its_pieces_are_written(house: House) -> None:
    peer = house.send("POST", "/predictions/m")
    peer.transport.window = 0
    job, flow = worker(house).batches[0].jobs[0], Flow()
    job.stream(Piece(200, bytes(PIECE // 2), flow=flow))
    assert flow.wanted
    assert flow.told == ["drained"]  # into the transport, which is full now

    job.stream(Piece(200, b"more", flow=flow))
    assert flow.told == ["drained"]
    peer.transport.take(2 * PIECE)

    assert flow.told == ["drained", "drained"]


def test_a_flow_is_told_when_its_client_leaves(house: House) -> None:
    peer = house.send("POST", "/predictions/m")
    job, flow = worker(house).batches[0].jobs[0], Flow()
    job.stream(Piece(200, b"a", flow=flow))

    peer.leave()

    assert flow.told == ["drained", "refused"]


def test_a_client_that_does_not_read_is_cut_off(house: House) -> None:
    peer = house.send("POST", "/predictions/m")
    job, flow = worker(house).batches[0].jobs[0], Flow()
    job.stream(Piece(200, b"a", flow=flow))

    job.stream(Piece(503, b"", unread="The client did not read."))
    house.clock.settle()

    assert peer.transport.aborted
    assert flow.told == ["drained", "refused"]
    house.clock.advance(10.0)
    assert house.registry.find("m").idle


def test_a_stream_of_which_nothing_was_written_is_answered_with_the_reason(house: House) -> None:
    asyncio.run(house.serve("n"))
    peer = house.send("POST", "/predictions/m")
    peer.send(b"POST /predictions/n HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
    (job,) = house.engine.workers[1].batches[0].jobs
    job.stream(Piece(200, b"a", flow=Flow()))

    job.stream(Piece(503, b"", unread="The client did not read."))
    house.clock.advance(10.0)

    assert peer.statuses == [200, 503]
    assert b"The client did not read." in peer.bodies[1]
    assert not peer.transport.closed
