"""A connection's refusals: an error document, then the end, so that even an uploader sees the answer."""

import json
import socket
import struct

import pytest

from tests.http.peer import GET, LAST, Peer, Server, chunked, echo, post
from tsctl.daemon.http.connection import CONTINUE
from tsctl.daemon.http.deadlines import LINGER_MOST
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import LINGERING
from tsctl.daemon.http.messages import Response

TOO_LARGE = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n"


class UnixSocket:
    """A Unix socket whose other end has these credentials."""

    family = socket.AF_UNIX

    def __init__(self, pid: int, uid: int) -> None:
        self._pid, self._uid = pid, uid

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert (level, option, size) == (socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return struct.pack("iII", self._pid, self._uid, 0)


def refused(status: int, kind: str, peer: Peer) -> bool:
    """Return whether the last answer is this error, followed by the end."""
    answer = peer.answers[-1]
    document = json.loads(answer.body)
    told = (document["code"], document["type"]) == (status, kind) and document["message"]
    return bool(told) and answer.status == status and not answer.keeps and peer.transport.eof


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.mark.parametrize(
    ("data", "status", "kind"),
    [
        pytest.param(b"\x16\x03\x01", 400, "BadRequestException", id="what is not HTTP"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", 400, "BadRequestException", id="no Host"),
        pytest.param(TOO_LARGE[:-2] + b"Transfer-Encoding: chunked\r\n\r\n", 400, "BadRequestException",
                     id="two lengths"),
        pytest.param(b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 405, "MethodNotAllowedException", id="CONNECT"),
        pytest.param(TOO_LARGE, 413, "RequestEntityTooLargeException", id="a body over the limit"),
        pytest.param(chunked(b"a" * 1001), 413, "RequestEntityTooLargeException", id="chunks over the limit"),
        pytest.param(post(b"a", "Expect: coffee"), 417, "BadRequestException", id="an unknown expectation"),
        pytest.param(GET[:-2] + b"X: y\r\n" * 20 + b"\r\n", 431, "BadRequestException", id="too many headers"),
        pytest.param(post(b"a").replace(b"Content-Length: 1", b"Transfer-Encoding: br"), 501, "BadRequestException",
                     id="an unknown encoding"),
    ],
)  # fmt: skip
def test_a_fault_is_answered_with_a_document_and_the_end(data: bytes, status: int, kind: str, server: Server) -> None:
    peer = server.connect()

    peer.send(data)

    assert refused(status, kind, peer)
    assert server.exchanges == []
    assert not peer.transport.closed


def test_a_refusal_is_in_the_access_log(server: Server) -> None:
    server.connect().send(TOO_LARGE)
    server.connect().send(b"\0")

    assert server.log == [("/", 413, 0.0), ("-", 400, 0.0)]


def test_a_body_over_the_limit_is_refused_before_it_comes_and_not_asked_for() -> None:
    peer = Server().connect()

    peer.send(TOO_LARGE[:-2] + b"Expect: 100-continue\r\n\r\n")

    assert peer.statuses == [413]
    assert CONTINUE not in peer.transport.written


def test_a_refusal_waits_for_the_answers_before(server: Server) -> None:
    peer = server.connect()
    peer.send(GET + TOO_LARGE)
    peer.send(b"a" * 1001)
    assert peer.answers == []

    server.exchanges[0].respond(Response(200, b"first"))

    assert peer.statuses == [200, 413]
    assert peer.answers[0].keeps
    assert peer.transport.eof


def test_what_still_comes_is_thrown_away_however_much_it_is(server: Server) -> None:
    peer = server.connect()
    peer.send(TOO_LARGE)

    for _ in range(290):
        peer.send(GET + bytes(100_000))
        server.clock.advance(0.1)

    assert not peer.transport.closed
    assert server.exchanges == []
    assert peer.statuses == [413]


def test_an_uploader_that_does_not_stop_is_left_after_half_a_minute(server: Server) -> None:
    peer = server.connect()
    peer.send(TOO_LARGE)

    seconds = 0
    while not peer.transport.closed:
        peer.send(bytes(1000))
        server.clock.advance(1.0)
        seconds += 1

    assert peer.transport.aborted
    assert LINGER_MOST <= seconds <= LINGER_MOST + 2


def test_so_many_uploaders_are_heard_out_at_a_time_and_the_first_is_left(server: Server) -> None:
    peers = [server.connect() for _ in range(LINGERING + 10)]
    for peer in peers:
        peer.send(TOO_LARGE)
        peer.send(bytes(1000))

    assert [peer.transport.aborted for peer in peers] == [True] * 10 + [False] * LINGERING
    assert [peer.statuses for peer in peers] == [[413]] * len(peers)


def test_of_those_that_only_have_to_close_none_is_left() -> None:
    server = Server(echo)
    peers = [server.connect() for _ in range(2 * LINGERING)]
    for peer in peers:
        peer.send(LAST)

    assert not any(peer.transport.aborted for peer in peers)


def test_an_uploader_that_has_left_counts_no_more(server: Server) -> None:
    for _ in range(2 * LINGERING):
        peer = server.connect()
        peer.send(TOO_LARGE)
        peer.send(bytes(1000))
        peer.finish()
        assert not peer.transport.aborted


def test_what_still_comes_is_thrown_away_for_two_seconds(server: Server) -> None:
    peer = server.connect()
    peer.send(TOO_LARGE)

    server.clock.advance(1.99)
    assert not peer.transport.closed
    server.clock.advance(0.01)

    assert peer.transport.aborted
    assert server.listener.connections == set()


def test_an_uploader_that_reads_its_answer_and_closes_is_not_reset() -> None:
    peer = Server().connect()
    peer.send(TOO_LARGE)
    peer.send(b"a" * 1001)

    peer.finish()

    assert peer.transport.closed
    assert not peer.transport.aborted


@pytest.mark.parametrize("uid_allowed", [True, False])
def test_who_may_connect_is_decided_by_the_peers_uid(uid_allowed: bool) -> None:
    asked: list[int] = []

    def allowed(uid: int) -> bool:
        asked.append(uid)
        return uid_allowed

    server = Server(echo, peer_allowed=allowed)
    peer = server.connect(socket=UnixSocket(pid=7, uid=2**32 - 2))
    peer.send(GET)

    assert asked == [2**32 - 2]
    assert peer.transport.aborted is not uid_allowed
    assert peer.statuses == ([200] if uid_allowed else [])
    assert [exchange.request.peer for exchange in server.exchanges] == (["pid:7"] if uid_allowed else [])
    assert len(server.listener.connections) == int(uid_allowed)


@pytest.mark.parametrize(
    ("length", "body", "status"),
    [
        pytest.param(b"0" * 5000, b"", 200, id="zeros"),
        pytest.param(b"0" * 5000 + b"3", b"abc", 200, id="after zeros"),
        pytest.param(b"9" * 5000, b"", 400, id="nines"),
    ],
)
def test_a_length_of_more_digits_than_python_reads_is_answered(length: bytes, body: bytes, status: int) -> None:
    peer = Server(echo, limits=HttpLimits(max_body=1000)).connect()

    peer.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + length + b"\r\n\r\n" + body)

    assert peer.statuses == [status]
