"""Over TLS a connection cannot be closed on one side: what that changes."""

import pytest

from tests.http.fake import FakeTransport
from tests.http.peer import GET, LAST, Peer, Server, echo, post
from tsctl.daemon.http.messages import Response


def connect(server: Server) -> Peer:
    peer = server.connect()
    peer.transport.half_closes = False
    return peer


def test_the_last_answer_closes_the_connection_at_once() -> None:
    peer = connect(Server(echo))

    peer.send(LAST)

    assert peer.statuses == [200]
    assert peer.transport.closed and not peer.transport.aborted


def test_an_answer_that_leaves_a_body_unread_waits_for_the_client_to_stop() -> None:
    server = Server(echo)
    peer = connect(server)

    peer.send(post(b"x" * 2000)[:100])

    assert peer.statuses == [413]
    assert not peer.transport.closed
    server.clock.advance(5.0)
    assert peer.transport.closed


def test_a_client_that_closes_its_side_has_left() -> None:
    server = Server()
    peer = connect(server)
    peer.send(GET)
    (exchange,) = server.exchanges
    told: list[bool] = []

    def leave(gone: bool) -> bool:
        told.append(gone)
        return False

    exchange.on_leave = leave

    peer.finish()

    assert told == [True]
    assert peer.transport.closed
    exchange.respond(Response(200, b"late"))
    assert peer.answers == []


class Closing(FakeTransport):
    """As asyncio's over TLS: to close takes two messages, and who does it twice has broken it."""

    closes = 0

    def close(self) -> None:
        self.closes += 1

    def is_closing(self) -> bool:
        return self.closes > 0

    def receive_eof(self) -> None:
        self._protocol.eof_received()  # closing is the protocol's part, whatever it returns

    def abort(self) -> None:
        assert self.closes < 2, "'NoneType' object has no attribute '_abort'"
        super().abort()


@pytest.mark.parametrize("after", ["the answer", "a deadline", "a stop"])
def test_a_transport_is_closed_once(after: str) -> None:
    server = Server(echo)
    connection = server.listener.connect()
    transport = Closing(connection, server.clock.soon)
    transport.half_closes = False
    transport.receive(LAST if after == "the answer" else GET)
    if after == "a deadline":
        server.clock.advance(75.0)
    server.listener.stop()
    assert transport.closes == 1

    transport.receive_eof()
    server.listener.stop()
    server.listener.abort()

    assert transport.closes == 1 and transport.aborted
