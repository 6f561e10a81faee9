"""Requests sent ahead: at most so many are owed an answer; what was read beyond them waits as it came."""

from dataclasses import replace

import pytest

from tests.http.peer import GET, LAST, LIMITS, Peer, Server, get, post
from tsctl.daemon.core.arena import SHARED_FROM
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response

MOST = LIMITS.pipeline
WIDE = replace(LIMITS, max_body=2 * SHARED_FROM)


def owed(server: Server) -> list[Exchange]:
    return [exchange for exchange in server.exchanges if not exchange.done]


def answer(server: Server, exchange: Exchange) -> None:
    exchange.respond(Response(200, exchange.request.target.encode() + bytes(exchange.request.body)))
    server.clock.settle()


def answer_all(server: Server) -> None:
    """Answer the latest first; never are there more than the limit."""
    while waiting := owed(server):
        assert len(waiting) <= MOST
        for exchange in reversed(waiting):
            answer(server, exchange)


def begin(data: bytes) -> tuple[Server, Peer]:
    server = Server(limits=WIDE)
    peer = server.connect()
    peer.send(data)
    return server, peer


def test_a_hundred_requests_in_one_read_are_given_to_the_application_a_few_at_a_time() -> None:
    server, peer = begin(b"".join(get(f"/{number}") for number in range(100)))
    assert len(server.exchanges) == MOST
    assert not peer.transport.reading

    for number in range(97):
        answer(server, server.exchanges[number])
        assert len(server.exchanges) == number + 1 + MOST
    assert not peer.transport.reading
    answer(server, server.exchanges[97])
    assert peer.transport.reading
    answer_all(server)

    assert peer.bodies == [b"/%d" % number for number in range(100)]


def test_a_hundred_that_are_answered_at_once_are_read_at_once() -> None:
    server = Server(lambda exchange: answer_now(exchange))
    peer = server.connect()

    peer.send(GET * 100)

    assert len(peer.answers) == 100 and peer.transport.reading


def answer_now(exchange: Exchange) -> None:
    exchange.respond(Response(200))


def test_what_is_kept_has_no_deadline_and_none_of_its_time_has_passed_when_it_is_read() -> None:
    server, peer = begin(GET * MOST + GET[:10])
    server.clock.advance(1000.0)
    assert peer.answers == []
    for exchange in server.exchanges:
        answer(server, exchange)

    server.clock.advance(9.9)
    assert peer.statuses == [200] * MOST
    server.clock.advance(0.1)

    assert peer.statuses == [200] * MOST + [408]


def test_a_body_that_was_kept_has_all_of_its_time() -> None:
    server, peer = begin(GET * MOST + post(b"abc")[:-1])
    server.clock.advance(1000.0)
    for exchange in server.exchanges:
        answer(server, exchange)

    server.clock.advance(9.9)
    peer.send(b"c")
    answer_all(server)

    assert peer.statuses == [200] * (MOST + 1)


def test_a_fault_that_was_kept_is_refused_in_its_turn() -> None:
    server, peer = begin(GET * MOST + b"\0" + GET)
    assert len(server.log) == 0

    answer_all(server)

    assert peer.statuses == [200] * MOST + [400]
    assert peer.transport.eof


def test_a_last_request_that_was_kept_is_the_last() -> None:
    server, peer = begin(GET * (MOST + 2) + LAST + get("/never"))

    answer_all(server)

    assert len(peer.answers) == MOST + 3 and peer.transport.eof
    assert "/never" not in [exchange.request.target for exchange in server.exchanges]


def test_an_answer_that_closes_drops_what_was_kept() -> None:
    server, peer = begin(GET * (MOST + 2))
    server.exchanges[0].close = True

    answer(server, server.exchanges[0])

    assert peer.statuses == [200] and peer.transport.eof
    assert len(server.exchanges) == MOST


def test_a_peer_that_does_not_read_its_answers_gets_no_further_ones() -> None:
    server, peer = begin(GET * (MOST + 2))
    peer.transport.stop_taking()
    answer(server, server.exchanges[0])
    assert len(server.exchanges) == MOST

    peer.transport.take_again()
    server.clock.settle()

    assert len(server.exchanges) == MOST + 1


def test_a_stop_answers_what_is_owed_and_drops_what_was_kept() -> None:
    server, peer = begin(GET * (MOST + 2))

    server.listener.stop()
    answer_all(server)

    assert [answer.keeps for answer in peer.answers] == [True] * (MOST - 1) + [False]
    assert peer.transport.eof


def test_of_what_was_kept_the_next_is_the_last_when_the_listener_winds_down() -> None:
    server, peer = begin(GET * (MOST + 2))

    server.listener.wind_down(10.0)
    answer_all(server)

    assert [answer.keeps for answer in peer.answers] == [True] * MOST + [False]


@pytest.mark.parametrize("leave", [Peer.leave, Peer.finish], ids=["the connection is lost", "its side is closed"])
def test_what_was_kept_goes_with_a_client_that_leaves(leave: object) -> None:
    server, peer = begin(GET * (MOST + 2))

    assert callable(leave)
    leave(peer)
    answer_all(server)

    assert len(server.exchanges) == MOST


def test_a_client_that_leaves_just_before_what_was_kept_is_read() -> None:
    server, peer = begin(GET * (MOST + 2))
    server.exchanges[0].respond(Response(200))

    peer.connection.connection_lost(None)
    server.clock.settle()

    assert len(server.exchanges) == MOST


def test_an_expectation_that_was_kept_is_met_in_its_turn() -> None:
    server, peer = begin(GET * MOST + post(b"abc", "Expect: 100-continue")[:-3])
    assert b"100 Continue" not in peer.transport.written

    answer_all(server)
    assert peer.transport.written.endswith(b"HTTP/1.1 100 Continue\r\n\r\n")
    peer.send(b"abc")
    answer_all(server)

    assert len(server.exchanges) == MOST + 1
