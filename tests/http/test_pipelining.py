"""Requests sent ahead: at most so many are owed an answer; what was read beyond them waits as it came."""

from dataclasses import replace

from tests.http.peer import GET, LIMITS, Peer, Server, get
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


def test_a_client_that_leaves_just_before_what_was_kept_is_read() -> None:
    server, peer = begin(GET * (MOST + 2))
    server.exchanges[0].respond(Response(200))

    peer.connection.connection_lost(None)
    server.clock.settle()

    assert len(server.exchanges) == MOST
