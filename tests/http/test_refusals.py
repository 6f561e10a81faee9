"""A connection's refusals: an error document, then the end, so that even an uploader sees the answer."""

import socket
import struct

import pytest

from tests.http.peer import GET, LAST, Server, echo
from tsctl.daemon.http.limits import HttpLimits
from tsctl.daemon.http.listener import LINGERING
from tsctl.daemon.http.states.connection import LINGER_MOST

TOO_LARGE = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n"


class UnixSocket:
    """A Unix socket whose other end has these credentials."""

    family = socket.AF_UNIX

    def __init__(self, pid: int, uid: int) -> None:
        self._pid, self._uid = pid, uid

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert (level, option, size) == (socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return struct.pack("iII", self._pid, self._uid, 0)


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_refusal_is_in_the_access_log(server: Server) -> None:
    server.connect().send(TOO_LARGE)
    server.connect().send(b"\0")

    assert server.log == [("/", 413, 0.0), ("-", 400, 0.0)]


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
