"""A listener that another one has replaced: each connection's next answer is its last, and no client meets a reset."""

import pytest

from tests.http.peer import GET, Peer, Server
from tsctl.daemon.http.exchange import Exchange
from tsctl.daemon.http.messages import Response
from tsctl.daemon.http.states.connection import SILENCE, Farewell


def echo(exchange: Exchange) -> None:
    exchange.respond(Response(200, bytes(exchange.request.body)))


@pytest.fixture
def server() -> Server:
    return Server(echo)


def test_a_listener_is_busy_until_the_last_has_left(server: Server) -> None:
    assert not server.listener.busy
    peer = server.connect()
    assert server.listener.busy

    peer.leave()

    assert not server.listener.busy


def test_a_listener_is_busy_while_somebody_may_be_shaking_hands(server: Server) -> None:
    server.listener.connect()

    server.clock.advance(9.9)
    assert server.listener.busy
    server.clock.advance(0.2)
    assert not server.listener.busy


GRACE = 3.0  # less than a head or a body may take otherwise
LARGE = 2**20
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n"


def look(server: Server, seconds: float) -> None:
    """Let the grace and so many seconds pass, with a look at the clients every tenth of a second."""
    for tenth in range(round((GRACE + seconds) * 10)):
        server.clock.advance(0.1)
        server.listener.let_go(over=tenth >= GRACE * 10)
        server.clock.settle()


@pytest.mark.parametrize("sent", [b"GET / HT", HEAD, HEAD + b"some"], ids=["a head", "no body", "a part of a body"])
def test_an_incomplete_request_is_refused_when_the_grace_is_over(sent: bytes, server: Server) -> None:
    peer = server.connect()
    peer.send(sent)
    server.listener.wind_down(GRACE)

    look(server, 0.1)

    assert peer.statuses == [503] and not peer.answers[0].keeps
    assert not peer.transport.aborted  # which could take the answer away


def test_an_idle_connection_is_closed_and_not_reset_when_the_grace_is_over(server: Server) -> None:
    peer = server.connect()
    peer.send(GET)
    server.listener.wind_down(GRACE)

    look(server, 0.1)

    assert peer.transport.closed and not peer.transport.aborted


def test_a_client_that_sends_and_reads_on_after_its_refusal_is_left(server: Server) -> None:
    peer = server.connect()
    peer.send(HEAD)
    server.listener.wind_down(GRACE)
    look(server, 0.1)

    for _ in range(round(SILENCE * 10) + 1):
        peer.send(b"x")
        server.clock.advance(0.1)
        server.listener.let_go(over=True)

    assert peer.transport.aborted


def unread(server: Server) -> Peer:
    """A client with an answer that it does not take."""
    peer = server.connect()
    peer.transport.window = 0
    peer.send(GET)
    server.exchanges[-1].respond(Response(200, bytes(LARGE)))
    server.clock.settle()
    return peer


def test_a_client_that_takes_nothing_is_left_when_the_grace_is_over() -> None:
    server = Server()
    peer = unread(server)
    server.listener.wind_down(GRACE)

    look(server, -0.1)
    assert not peer.transport.aborted
    look(server, 0.1)

    assert peer.transport.aborted


def test_a_request_that_runs_is_answered_after_the_grace_and_its_client_has_time_to_read() -> None:
    server = Server()
    peer = server.connect()
    peer.transport.window = 0
    peer.send(GET)
    server.listener.wind_down(GRACE)
    look(server, 60.0)
    assert not peer.transport.aborted

    server.exchanges[0].respond(Response(200, bytes(LARGE)))
    for _ in range(round(GRACE * 10) - 1):  # slowly
        peer.transport.take(1000)
        server.clock.advance(0.1)
        server.listener.let_go(over=True)
        server.clock.settle()
    assert not peer.transport.aborted
    for _ in range(5):
        peer.transport.take(1000)
        server.clock.advance(0.1)
        server.listener.let_go(over=True)

    assert peer.transport.aborted


def test_no_handshake_is_waited_for_when_the_grace_is_over(server: Server) -> None:
    server.listener.connect()
    server.listener.wind_down(0.0)

    server.listener.let_go(over=True)

    assert not server.listener.busy


@pytest.mark.parametrize(
    ("now", "unsent", "left"),
    [
        pytest.param(9.9, 5, False, id="nobody within the grace"),
        pytest.param(10.0, 5, True, id="who has taken nothing, at its end"),
        pytest.param(10.0, 4, True, id="who has read slowly since the beginning, too"),
    ],
)
def test_who_was_there_at_the_replacement_is_left_at_the_end_of_the_grace(now: float, unsent: int, left: bool) -> None:
    farewell: Farewell[str] = Farewell(10.0, 0.0)
    farewell.overdue({"a": 5}, 0.0)

    assert (farewell.overdue({"a": unsent}, now) == ["a"]) is left


def test_who_begins_to_wait_anew_has_the_time_anew() -> None:
    farewell: Farewell[str] = Farewell(10.0, 0.0)
    farewell.overdue({"a": 5}, 0.0)
    farewell.overdue({}, 1.0)
    farewell.overdue({"a": 5}, 9.0)

    assert farewell.overdue({"a": 4}, 10.0) == []
    assert farewell.overdue({"a": 4}, 11.9) == []
    assert farewell.overdue({"a": 4}, 12.0) == ["a"]
