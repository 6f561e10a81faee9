"""A listener knows its connections, and stops them without losing an answer."""

import pytest

from tests.http.peer import GET, Server, echo, get, post
from tsctl.daemon.http.messages import Response


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_listener_knows_its_connections(server: Server) -> None:
    first, second = server.connect(), server.connect()
    assert server.listener.connections == {first.connection, second.connection}
    assert repr(server.listener) == "<Listener 2 connections>"

    first.leave()

    assert server.listener.connections == {second.connection}


def test_a_connection_shows_what_it_owes() -> None:
    peer = Server().connect(peername=("10.0.0.1", 80))

    peer.send(GET + GET)

    assert repr(peer.connection) == "<Connection 10.0.0.1:80 READING owes 2>"


def test_one_timer_watches_over_all_connections(server: Server) -> None:
    early = server.connect()
    server.clock.advance(10.0)
    late = server.connect()
    slow = server.connect()
    slow.send(GET[:5])

    server.clock.advance(10.0)
    assert slow.statuses == [408]
    server.clock.advance(55.0)
    assert early.transport.closed
    assert not late.transport.closed
    server.clock.advance(10.0)

    assert late.transport.closed
    assert server.listener.connections == set()


def test_deadlines_are_kept_after_a_time_without_connections(server: Server) -> None:
    server.connect().leave()
    server.clock.advance(1000.0)
    peer = server.connect()

    server.clock.advance(75.0)

    assert peer.transport.closed


def test_stopping_closes_idle_connections() -> None:
    server = Server(echo)
    fresh, used = server.connect(), server.connect()
    used.send(GET)

    server.listener.stop()
    server.clock.settle()

    assert fresh.transport.closed
    assert used.transport.closed
    assert not used.transport.aborted
    assert repr(server.listener) == "<Listener 0 connections stopping>"


def test_stopping_lets_a_connection_answer_and_then_closes_it(server: Server) -> None:
    peer = server.connect()
    peer.send(GET)

    server.listener.stop()
    assert not peer.transport.closed
    server.exchanges[0].respond(Response(200, b"late"))

    assert peer.bodies == [b"late"]
    assert not peer.answers[0].keeps
    assert peer.transport.eof


def test_stopping_loses_no_answer_that_is_owed(server: Server) -> None:
    peer = server.connect()
    peer.send(get("/0") + get("/1") + get("/2"))
    server.exchanges[1].respond(Response(200, b"one"))

    server.listener.stop()
    for index in (2, 0):
        server.exchanges[index].respond(Response(200, b"%d" % index))

    assert peer.bodies == [b"0", b"one", b"2"]
    assert [answer.keeps for answer in peer.answers] == [True, True, False]
    assert peer.transport.eof


def test_stopping_waits_for_a_request_that_has_begun() -> None:
    server = Server(echo)
    peer = server.connect()
    data = post(b"abc")
    peer.send(data[:-1])

    server.listener.stop()
    server.clock.settle()
    assert not peer.transport.closed
    peer.send(data[-1:] + GET)

    assert peer.bodies == [b"abc"]
    assert not peer.answers[0].keeps
    assert peer.transport.eof


def test_stopping_accepts_no_request_after_those_that_are_owed(server: Server) -> None:
    peer = server.connect()
    peer.send(GET)

    server.listener.stop()
    peer.send(GET)

    assert len(server.exchanges) == 1


def test_a_connection_made_while_stopping_is_answered_once() -> None:
    server = Server(echo)
    server.listener.stop()
    peer = server.connect()

    peer.send(GET + GET)

    assert peer.statuses == [200]
    assert peer.transport.eof


def test_stopping_ends_an_answer_in_pieces_with_the_connection(server: Server) -> None:
    peer = server.connect()
    peer.send(GET)
    server.exchanges[0].start(Response(200))

    server.listener.stop()
    server.exchanges[0].send(b"x")
    server.exchanges[0].finish()

    assert peer.bodies == [b"x"]
    assert peer.transport.eof


def test_aborting_ends_every_connection_now(server: Server) -> None:
    idle, owed = server.connect(), server.connect()
    owed.send(GET)

    server.listener.abort()
    server.clock.settle()

    assert idle.transport.aborted
    assert owed.transport.aborted
    assert server.listener.connections == set()
