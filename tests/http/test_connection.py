"""A conversation: requests are answered whole, in order, and the connection ends when both sides say so."""

import pytest

from tests.http.peer import GET, Server, echo, get
from tsctl.daemon.http.messages import Response


def answer(server: Server, index: int, body: bytes = b"") -> None:
    server.exchanges[index].respond(Response(200, body))
    server.clock.settle()


def test_each_answer_has_the_id_of_its_request() -> None:
    server = Server(echo)
    peer = server.connect()

    peer.send(GET + GET)

    ids = [exchange.request.id for exchange in server.exchanges]
    assert [answer.headers["x-request-id"] for answer in peer.answers] == ids
    assert len(set(ids)) == 2


@pytest.mark.parametrize("body", [b"", b"abc", b"a" * 100_000], ids=["empty", "small", "large"])
def test_head_is_answered_with_the_length_and_no_body(body: bytes) -> None:
    peer = Server(lambda exchange: exchange.respond(Response(200, body))).connect()

    peer.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")

    assert peer.transport.written.endswith(b"\r\n\r\n")
    assert b"\r\ncontent-length: %d\r\n" % len(body) in peer.transport.written


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_that_may_have_no_body_has_none(status: int) -> None:
    peer = Server(lambda exchange: exchange.respond(Response(status, b"abc"))).connect()

    peer.send(GET)

    assert peer.transport.written.endswith(b"\r\n\r\n")
    assert b"content-length" not in peer.transport.written


def test_a_large_answer_arrives_whole() -> None:
    body = bytes(range(256)) * 1000
    peer = Server(lambda exchange: exchange.respond(Response(200, body))).connect()

    peer.send(GET)

    assert peer.bodies == [body]


def test_the_access_log_has_each_answer_with_its_time() -> None:
    server = Server()
    peer = server.connect()
    peer.send(get("/a?b"))

    server.clock.advance(1.5)
    answer(server, 0)

    assert server.log == [("/a?b", 200, 1.5)]


def test_a_request_knows_who_sent_it() -> None:
    server = Server()

    server.connect(peername=("10.0.0.1", 4321)).send(GET)
    server.connect().send(GET)

    assert [exchange.request.peer for exchange in server.exchanges] == ["10.0.0.1:4321", "unknown"]


def test_requests_that_had_arrived_do_not_save_a_peer_that_does_not_read() -> None:
    server = Server()
    peer = server.connect()
    server.listener.application = lambda exchange: peer.transport.stop_taking() if exchange.request.path else None

    peer.send(get("/stop") + GET)
    server.clock.advance(60.0)

    assert peer.transport.aborted
