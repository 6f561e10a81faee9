"""A listener knows its connections, and stops them without losing an answer."""

import pytest

from tests.http.peer import GET, Server, echo


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
