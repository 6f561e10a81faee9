"""A request that says how long it may take is not waited for longer, even while its body arrives."""

import json
from dataclasses import replace

import pytest

from tests.http.peer import GET, Peer, Server, echo
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.messages import Response

FAST = HttpLimits(max_body=10**6, pipeline=3)


def head(budget: str, length: int = 4) -> bytes:
    lines = ["POST / HTTP/1.1", "Host: a", f"X-Request-Deadline-Ms: {budget}", f"Content-Length: {length}", "", ""]
    return "\r\n".join(lines).encode()


def connect(server: Server, *data: bytes) -> Peer:
    peer = server.connect()
    for each in data:
        peer.send(each)
    return peer


def test_a_body_that_is_slower_is_not_waited_for() -> None:
    server = Server(echo, FAST)
    peer = connect(server, head("500"), b"ab")

    server.clock.advance(0.4999)
    assert peer.answers == []
    server.clock.advance(0.0002)

    (answer,) = peer.answers
    assert (answer.status, json.loads(answer.body)) == (
        504,
        {
            "code": 504,
            "type": "RequestTimeoutException",
            "message": "The body did not arrive in the 500 ms that x-request-deadline-ms allows for the request."
            " Allow more time, or send less.",
        },
    )
    assert not answer.keeps and peer.transport.eof


def test_what_still_arrives_is_thrown_away() -> None:
    server = Server(echo, FAST)
    peer = connect(server, head("500"))
    server.clock.advance(1.0)

    peer.send(b"abcd")
    server.clock.advance(100.0)

    assert peer.statuses == [504] and peer.transport.closed
    assert server.exchanges == []


def test_a_body_that_arrives_in_time_is_answered_and_the_rest_is_the_models_business() -> None:
    server = Server(limits=FAST)
    peer = connect(server, head("500"), b"ab")
    server.clock.advance(0.25)
    peer.send(b"cd")
    server.clock.advance(10.0)

    (exchange,) = server.exchanges
    exchange.respond(Response(200, bytes(exchange.request.body)))

    assert (peer.statuses, peer.bodies) == ([200], [b"abcd"])
    assert (exchange.request.began, exchange.request.received) == (1000.0, 1000.25)
    assert exchange.request.budget == "500"


def test_the_budget_of_a_request_is_not_kept_for_the_next() -> None:
    server = Server(echo, FAST)
    peer = connect(server, head("500"), b"abcd", head("60000").replace(b"X-Request-Deadline-Ms", b"X-Other"), b"ab")

    server.clock.advance(5.0)
    peer.send(b"cd" + GET)

    assert peer.statuses == [200, 200, 200]
    assert [each.request.budget for each in server.exchanges] == ["500", None, None]


def test_each_request_has_a_budget_of_its_own() -> None:
    server = Server(echo, FAST)
    peer = connect(server, head("500"), b"abcd", head("2000"))

    server.clock.advance(1.9)
    assert peer.statuses == [200]
    server.clock.advance(0.2)

    assert peer.statuses == [200, 504]


def test_an_answer_owed_before_it_is_still_given() -> None:
    server = Server(limits=FAST)
    peer = connect(server, GET, head("500"))
    server.clock.advance(30.0)
    assert peer.answers == []

    server.exchanges[0].respond(Response(200))

    assert peer.statuses == [200, 504] and peer.transport.eof


@pytest.mark.parametrize("budget", ["soon", "0", ""])
def test_what_is_no_budget_is_left_to_the_route(budget: str) -> None:
    server = Server(echo, FAST)
    peer = connect(server, head(budget), b"ab")
    server.clock.advance(5.0)
    peer.send(b"cd")

    assert peer.statuses == [200]
    assert server.exchanges[0].request.budget == budget


def test_of_repeated_headers_the_last_counts() -> None:
    server = Server(echo, FAST)
    lines = b"POST / HTTP/1.1\r\nHost: a\r\nx-request-deadline-ms: 1\r\nx-request-deadline-ms: 2\r\n"
    connect(server, lines + b"x-request-priority: low\r\nx-request-priority: normal\r\n\r\n")

    (exchange,) = server.exchanges
    assert (exchange.request.budget, exchange.request.priority) == ("2", "normal")


def test_a_client_that_leaves_while_it_sends_costs_nothing_more() -> None:
    server = Server(echo, FAST)
    peer = connect(server, head("500"), b"ab")
    peer.leave()

    server.clock.advance(5.0)

    assert peer.answers == [] and server.exchanges == []


LONG = b"POST / HTTP/1.1\r\nHost: a\r\nX-Request-Deadline-Ms: 2000\r\nTransfer-Encoding: chunked\r\n\r\n"
TOO_MUCH = b"fff\r\n" + bytes(0xFFF)


def test_a_request_that_was_refused_is_not_refused_again_at_its_deadline() -> None:
    server = Server(echo, replace(FAST, max_body=1000))
    peer = connect(server, LONG + b"2\r\nab\r\n", TOO_MUCH)
    assert peer.statuses == [413]

    for _ in range(4):  # the uploader goes on
        peer.send(b"a")
        server.clock.advance(1.0)

    assert peer.statuses == [413]
    assert [status for _, status, _ in server.log] == [413]


def test_so_it_is_behind_an_answer_that_is_owed() -> None:
    server = Server(limits=replace(FAST, max_body=1000))
    peer = connect(server, GET + LONG + b"2\r\nab\r\n", TOO_MUCH)

    server.clock.advance(3.0)
    server.exchanges[0].respond(Response(200))

    assert peer.statuses == [200, 413]
    assert sorted(status for _, status, _ in server.log) == [200, 413]
