"""Which connection makes room, and a page that is busy with connections that say nothing."""

import io
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.client import DaemonClient
from tsctl.extensions.console.listening import Listening
from tsctl.extensions.console.page import CONNECTIONS, PageServer
from tsctl.extensions.console.places import HeldConnection, HeldConnections, TimedReading, leaves

SILENT = CONNECTIONS + 12


def place(peer: str = "a", *, known: bool = False, busy: bool = False) -> HeldConnection:
    made = HeldConnection(peer)
    made.known, made.busy = known, busy
    return made


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param([], None, id="nobody"),
        pytest.param([place(), place()], 0, id="the oldest"),
        pytest.param([place("a"), place("b"), place("b")], 1, id="the oldest of the peer with the most"),
        pytest.param([place(known=True), place("b")], 1, id="a stranger before the operator"),
        pytest.param([place(known=True), place(known=True)], 0, id="of the operator's the oldest"),
        pytest.param([place(known=True, busy=True), place(known=True)], 1, id="none that is being answered"),
        pytest.param([place(known=True, busy=True)], None, id="all are being answered"),
    ],
)
def test_who_makes_room(places: list[HeldConnection], expected: int | None) -> None:
    assert leaves(places) is (None if expected is None else places[expected])


def test_a_place_is_free_again_when_its_connection_ends() -> None:
    places = HeldConnections(1)
    (first, one), (second, two) = socket.socketpair(), socket.socketpair()
    with first, one, second, two:
        assert places.admit(first, "a")
        places.answering(first)
        assert not places.admit(second, "a")

        places.leave(first)

        assert places.admit(second, "a")
        places.answering(first)  # which has no place any more
        places.leave(first)


def test_a_head_that_comes_byte_by_byte_is_not_waited_for() -> None:
    now = 0.0
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reading = TimedReading(theirs, 60.0, lambda: now)
        file = io.BufferedReader(reading)
        reading.within(10.0)
        for each in b"GET":
            ours.sendall(bytes([each]))
            assert file.read1(1) == bytes([each])
            now += 4.0

        with pytest.raises(TimeoutError):
            file.read1(1)

        assert theirs.gettimeout() == 60.0  # for the answer


@pytest.fixture
def page(daemon: FakeDaemon) -> Iterator[PageServer]:
    """A page that listens."""
    server = PageServer(Listening("127.0.0.1", 0, None, ""), DaemonClient(daemon.path, 10.0), Path(daemon.path.parent))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    with server:
        yield server
        server.shutdown()
    thread.join()


def ask(page: PageServer, head: str) -> bytes:
    """Return the answer to a request over a connection of its own."""
    with socket.create_connection(("127.0.0.1", page.port), 30.0) as connection:
        connection.sendall(head.replace("HOST", page.own).encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_silent_connections_lock_nobody_out(page: PageServer) -> None:
    silent = [socket.create_connection(("127.0.0.1", page.port), 30.0) for _ in range(SILENT)]
    try:
        answer = ask(page, "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n")

        assert answer.startswith(b"HTTP/1.1 200 ")
        assert silent[0].recv(1) == b""  # made room
    finally:
        for each in silent:
            each.close()


@pytest.mark.parametrize(
    "head",
    [
        pytest.param("POST /enter HTTP/1.1\r\nContent-Length: " + "9" * 5000, id="a length of 5000 digits"),
        pytest.param("POST /api/x HTTP/1.1\r\nContent-Length: " + "9" * 5000, id="also where nobody may ask"),
        pytest.param("GET http://[ HTTP/1.1", id="an address that is none"),
        pytest.param("GET //[x HTTP/1.1", id="two slashes and a bracket"),
        pytest.param("GET * HTTP/1.1", id="a star"),
        pytest.param("GET /?%ff=\x00 HTTP/1.1", id="bytes that are no text"),
        pytest.param("\x16\x03\x01 x HTTP/1.1", id="a method of control characters"),
        pytest.param("GET / HTTP/" + "9" * 5000 + ".1", id="a version of 5000 digits"),
        pytest.param("GET / HTTP/²", id="a version that is no number"),
        pytest.param("GET / HTTP/1.1\r\n" + "A: b\r\n" * 200 + "A: b", id="too many headers"),
        pytest.param("GET / HTTP/1.1\r\n: \r\nno colon\r\n é: é", id="headers that are none"),
        pytest.param("GET /api/x HTTP/1.1\r\nAuthorization: Bearer \xff\x00é", id="a secret that is no text"),
        pytest.param("GET " + "x" * 70000 + " HTTP/1.1", id="a long line"),
    ],
)
@pytest.mark.parametrize("origin", ["", "\r\nOrigin: http://HOST"])
def test_a_hostile_head_is_refused_without_a_traceback(
    page: PageServer, capfd: pytest.CaptureFixture[str], head: str, origin: str
) -> None:
    ask(page, f"{head}\r\nHost: HOST{origin}\r\nConnection: close\r\n\r\n")

    answer = ask(page, "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert capfd.readouterr().err == ""
