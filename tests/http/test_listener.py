"""A listener knows its connections, and stops them without losing an answer."""

import pytest

from tests.http.peer import GET, Server


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
