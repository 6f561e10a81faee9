"""A conversation: requests are answered whole, in order, and the connection ends when both sides say so."""

import pytest

from tests.http.peer import GET, LAST, LIMITS, Server, echo, get, post
from tsctl.daemon.http.connection import CONTINUE
from tsctl.daemon.http.messages import Response


def answer(server: Server, index: int, body: bytes = b"") -> None:
    server.exchanges[index].respond(Response(200, body))
    server.clock.settle()


def test_a_request_is_answered_and_the_connection_kept() -> None:
    server = Server(echo)
    peer = server.connect()

    peer.send(post(b"abc"))
    peer.send(post(b"de"))

    assert peer.bodies == [b"abc", b"de"]
    assert all(answer.keeps for answer in peer.answers)
    assert not peer.transport.closed


def test_each_answer_has_the_id_of_its_request() -> None:
    server = Server(echo)
    peer = server.connect()

    peer.send(GET + GET)

    ids = [exchange.request.id for exchange in server.exchanges]
    assert [answer.headers["x-request-id"] for answer in peer.answers] == ids
    assert len(set(ids)) == 2


def test_a_full_pipeline_is_not_read_from() -> None:
    server = Server()
    peer = server.connect()
    for _ in range(LIMITS.pipeline):
        assert peer.transport.reading
        peer.send(GET)

    peer.send(GET)
    assert not peer.transport.reading
    assert len(server.exchanges) == LIMITS.pipeline

    answer(server, 0)
    assert len(server.exchanges) == LIMITS.pipeline + 1


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(LAST, id="a client that says close"),
        pytest.param(b"GET / HTTP/1.0\r\n\r\n", id="HTTP/1.0"),
        pytest.param(post(b"abc", "Connection: Upgrade\r\nUpgrade: h2c"), id="a client that offers HTTP/2"),
    ],
)
def test_the_connection_closes_after_the_last_answer(request_: bytes) -> None:
    server = Server(echo)
    peer = server.connect()

    peer.send(request_)

    (only,) = peer.answers
    assert only.status == 200
    assert not only.keeps
    assert only.body == server.exchanges[0].request.body
    assert peer.transport.eof


def test_http_1_0_is_kept_if_the_client_asks() -> None:
    peer = Server(echo).connect()

    peer.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" * 2)

    assert [answer.keeps for answer in peer.answers] == [True, True]
    assert not peer.transport.eof


def test_what_follows_the_last_request_is_not_read() -> None:
    server = Server()
    peer = server.connect()

    peer.send(LAST + get("/never"))
    peer.send(get("/never") + b"not HTTP")
    answer(server, 0)

    assert len(server.exchanges) == 1
    assert peer.statuses == [200]
    assert [status for _, status, _ in server.log] == [200]


def test_after_the_last_answer_the_client_closes_and_so_do_we() -> None:
    server = Server(echo)
    peer = server.connect()
    peer.send(LAST)
    assert not peer.transport.closed

    peer.finish()

    assert peer.transport.closed
    assert not peer.transport.aborted
    assert server.listener.connections == set()


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


def test_a_client_that_waits_is_told_to_send_its_body() -> None:
    peer = Server(echo).connect()
    data = post(b"abc", "Expect: 100-continue")

    peer.send(data[:-3])
    assert peer.transport.written == CONTINUE
    peer.send(b"abc")

    assert peer.bodies == [b"abc"]


def test_a_client_waits_for_the_answers_before() -> None:
    server = Server()
    peer = server.connect()
    peer.send(GET + post(b"abc", "Expect: 100-continue")[:-3])
    assert peer.transport.written == b""

    answer(server, 0, b"first")
    assert peer.transport.written.endswith(b"first" + CONTINUE)
    peer.send(b"abc")
    answer(server, 1, b"second")

    assert peer.bodies == [b"first", b"second"]


def test_a_client_that_did_not_wait_is_not_told_to_go_on() -> None:
    server = Server()
    peer = server.connect()
    peer.send(GET + post(b"abc", "Expect: 100-continue"))

    answer(server, 0)
    answer(server, 1)

    assert CONTINUE not in peer.transport.written
    assert peer.statuses == [200, 200]


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
