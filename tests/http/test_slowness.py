"""A peer that is slow, or does not read, costs a connection for a bounded time."""

import json

import pytest

from tests.http.peer import GET, LAST, LIMITS, Peer, Server, echo, get, post
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.messages import Response

FAST = HttpLimits(max_body=10**6, pipeline=3)


def told(peer: Peer) -> tuple[int, str]:
    """Status and sentence of the only answer."""
    (answer,) = peer.answers
    return answer.status, json.loads(answer.body)["message"]


def trickle(server: Server, peer: Peer, data: bytes, seconds: float) -> None:
    """Send bytes one by one, with a pause before each."""
    for i in range(len(data)):
        server.clock.advance(seconds)
        peer.send(data[i : i + 1])


@pytest.fixture
def server() -> Server:
    return Server()


def test_an_idle_connection_is_closed_without_a_word(server: Server) -> None:
    peer = server.connect()

    server.clock.advance(74.9)
    assert not peer.transport.closed
    server.clock.advance(0.1)

    assert peer.transport.closed
    assert peer.transport.written == b""
    assert server.log == []


def test_a_connection_is_idle_from_its_last_answer_on() -> None:
    server = Server(echo)
    peer = server.connect()
    server.clock.advance(50.0)
    peer.send(GET)

    server.clock.advance(74.9)
    assert not peer.transport.closed
    server.clock.advance(0.1)

    assert peer.transport.closed
    assert not peer.transport.eof


def test_a_short_keep_alive_is_kept_beside_longer_deadlines() -> None:
    server = Server(echo, HttpLimits(max_body=10, keep_alive=1.0))
    slow = server.connect()
    slow.send(GET[:5])
    server.clock.advance(2.0)
    idle = server.connect()
    idle.send(GET)

    server.clock.advance(1.0)

    assert idle.transport.closed
    assert not slow.transport.closed


def test_an_answer_may_take_any_time(server: Server) -> None:
    peer = server.connect()
    peer.send(GET)

    server.clock.advance(10_000.0)
    server.exchanges[0].respond(Response(200))

    assert peer.statuses == [200]


def test_headers_must_come_in_time(server: Server) -> None:
    peer = server.connect()
    server.clock.advance(70.0)

    peer.send(GET[:1])
    trickle(server, peer, GET[1:10], 1.0)
    assert peer.answers == []
    server.clock.advance(1.0)

    assert told(peer) == (408, "The headers took longer than 10 s to arrive.")
    assert peer.transport.eof


def test_each_of_many_requests_has_the_whole_time_for_its_headers() -> None:
    server = Server(limits=HttpLimits(max_body=10))
    peer = server.connect()
    peer.send(GET[:5])

    for _ in range(5):  # never idle, and at each pause the headers of some request have begun
        server.clock.advance(9.0)
        peer.send(GET[5:] + GET[:5])
    server.clock.advance(9.9)
    assert len(server.exchanges) == 5
    assert peer.answers == []
    for exchange in server.exchanges:
        exchange.respond(Response(200))
    server.clock.advance(0.1)

    assert peer.statuses == [200] * 5 + [408]


@pytest.mark.parametrize(
    ("rate", "seconds"),
    [
        pytest.param(0, 10.0, id="no body at all"),
        pytest.param(999, 10.0, id="just below 1 000 bytes a second"),
    ],
)
def test_a_body_must_come_at_some_rate(rate: int, seconds: float) -> None:
    server = Server(limits=FAST)
    peer = server.connect()
    peer.send(post(b"a" * 100_000)[:-100_000])

    for _ in range(9):
        server.clock.advance(1.0)
        peer.send(b"a" * rate)
    assert peer.answers == []
    server.clock.advance(1.0)

    assert told(peer) == (408, "The body arrived more slowly than 1000 bytes a second.")
    assert server.clock.now() == 1000.0 + seconds


def test_a_body_that_slows_down_is_refused_when_its_average_is_too_low() -> None:
    server = Server(limits=FAST)
    peer = server.connect()
    peer.send(post(b"a" * 100_000)[:-85_000])  # 15 000 bytes at once: enough for 15 s

    server.clock.advance(15.0)
    assert peer.answers == []
    server.clock.advance(1.0)

    assert peer.statuses == [408]


def test_a_body_must_come_in_time_at_any_rate() -> None:
    server = Server(limits=HttpLimits(max_body=10**6, body_timeout=65.0))
    peer = server.connect()
    peer.send(post(b"a" * 1_000_000)[:-1_000_000])

    for _ in range(65):
        assert peer.answers == []
        peer.send(b"a" * 10_000)
        server.clock.advance(1.0)

    assert told(peer) == (408, "The body took longer than 65 s to arrive.")


def test_a_short_body_timeout_counts_before_the_rate_does() -> None:
    server = Server(limits=HttpLimits(max_body=100, body_timeout=3.0))
    peer = server.connect()
    peer.send(post(b"a" * 50)[:-1])

    server.clock.advance(3.0)

    assert told(peer) == (408, "The body took longer than 3 s to arrive.")


def test_a_body_that_comes_in_time_is_answered() -> None:
    server = Server(echo, FAST)
    peer = server.connect()
    body = b"a" * 59_000
    peer.send(post(body)[: -len(body)])

    for i in range(59):
        peer.send(body[i * 1000 : (i + 1) * 1000])
        server.clock.advance(1.0)

    assert peer.bodies == [body]


def test_a_peer_that_does_not_read_is_not_read_from(server: Server) -> None:
    peer = server.connect()
    peer.send(GET)

    peer.transport.stop_taking()
    assert not peer.transport.reading
    peer.send(get("/later"))
    assert len(server.exchanges) == 1

    peer.transport.take_again()
    server.clock.settle()
    assert peer.transport.reading
    assert len(server.exchanges) == 2


def test_a_peer_that_never_reads_is_given_up() -> None:
    server = Server(limits=LIMITS)
    peer = server.connect()
    peer.send(GET)
    peer.transport.stop_taking()
    server.exchanges[0].respond(Response(200, b"a" * 100_000))

    server.clock.advance(59.9)
    assert not peer.transport.closed
    server.clock.advance(0.1)

    assert peer.transport.aborted


def test_a_peer_that_reads_slowly_gets_all_of_a_large_answer(server: Server) -> None:
    peer = server.connect()
    peer.send(GET)
    for unsent in range(500_000, 0, -100_000):
        peer.transport.unsent = unsent
        if unsent == 500_000:
            peer.transport.stop_taking()
        else:
            server.clock.advance(60.0)

    assert not peer.transport.closed
    server.clock.advance(60.0)

    assert peer.transport.aborted  # for a whole minute it has taken nothing


def test_a_peer_that_reads_again_starts_anew() -> None:
    server = Server(echo)
    peer = server.connect()
    peer.transport.stop_taking()
    server.clock.advance(59.0)

    peer.transport.take_again()
    server.clock.advance(74.9)
    assert not peer.transport.closed
    server.clock.advance(0.1)

    assert peer.transport.closed
    assert not peer.transport.aborted


def test_requests_that_had_arrived_do_not_save_a_peer_that_does_not_read(server: Server) -> None:
    peer = server.connect()
    server.listener.application = lambda exchange: peer.transport.stop_taking() if exchange.request.path else None

    peer.send(get("/stop") + GET)
    server.clock.advance(60.0)

    assert peer.transport.aborted


def test_a_slow_reader_gets_all_of_a_last_answer(server: Server) -> None:
    peer = server.connect()
    peer.send(LAST)
    peer.transport.window = 0  # the answer waits in the transport
    server.exchanges[0].respond(Response(200, b"a" * 100_000))
    assert peer.transport.eof

    server.clock.advance(50.0)
    peer.transport.take(90_000)
    server.clock.advance(50.0)
    assert not peer.transport.closed

    peer.finish()
    assert not peer.transport.aborted


def test_a_slow_reader_that_has_got_all_has_two_seconds_to_close(server: Server) -> None:
    peer = server.connect()
    peer.send(LAST)
    peer.transport.stop_taking()
    peer.transport.unsent = 100_000
    server.exchanges[0].respond(Response(200))
    server.clock.advance(10.0)
    peer.transport.unsent = 0
    peer.transport.take_again()

    server.clock.advance(1.9)
    assert not peer.transport.closed
    server.clock.advance(0.1)

    assert peer.transport.aborted


def test_a_reader_that_is_stuck_with_a_last_answer_is_given_up() -> None:
    server = Server(echo)
    peer = server.connect()
    peer.transport.unsent = 10_000

    peer.send(LAST)
    server.clock.advance(61.9)
    assert not peer.transport.closed
    server.clock.advance(0.1)

    assert peer.transport.aborted
