"""Answers in pieces, from a real handler to a real client."""

import http.client
import socket
import time
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, Served

MIB = 1024 * 1024


def anonymous(pid: int) -> int:
    """Bytes of a process that no file holds: its heap, and the arena."""
    with open(f"/proc/{pid}/status") as status:
        return sum(int(line.split()[1]) for line in status if line.startswith(("RssAnon:", "RssShmem:"))) * 1024


@pytest.fixture(scope="session")
def counting(shared: Served) -> Served:
    shared.register("counts")
    return shared


@pytest.mark.thin
def test_a_client_reads_the_first_piece_before_the_last_is_made(counting: Served, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    connection = counting.connect()
    connection.request("POST", "/predictions/counts", f"go {gate}".encode(), {"Content-Type": "text/plain"})
    response = connection.getresponse()

    first = response.read1()
    gate.touch()  # only now can the rest be made

    assert first == b"0 "
    assert response.read() == b"1 2 end"
    assert response.getheader("Transfer-Encoding") == "chunked"
    connection.close()


@pytest.mark.thin
def test_an_error_in_the_middle_is_a_cut_and_not_an_end(counting: Served) -> None:
    connection = counting.connect()
    connection.request("POST", "/predictions/counts", b"fail", {"Content-Type": "text/plain"})
    response = connection.getresponse()

    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        response.read()

    connection.close()


class Silent:
    """A client that asks and does not read."""

    def __init__(self, served: Served, *bodies: bytes, headers: bytes = b"") -> None:
        host, _, port = served.url.removeprefix("http://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE)
        for body in bodies:
            head = b"POST /predictions/pours HTTP/1.1\r\nHost: a\r\n%bContent-Length: %d\r\n\r\n"
            self.socket.sendall(head % (headers, len(body)) + body)

    def ended(self) -> bytes:
        """Read what was sent until the daemon ended the connection; the last bytes of that."""
        last = b""
        try:
            while data := self.socket.recv(2**20):
                last = (last + data)[-100:]
        except ConnectionResetError:
            pass
        self.socket.close()
        return last


@pytest.fixture
def pouring(idle: Served) -> Served:
    idle.start("--max-sending-bytes", "64MiB")
    return idle


def test_a_client_that_does_not_read_is_cut_and_its_neighbour_gets_all(pouring: Served) -> None:
    pouring.register("pours", "--batch-size", "2", "--max-delay", "5000", "--batching", "fixed")
    before = anonymous(pouring.pid)
    silent = Silent(pouring, b"200")
    connection = pouring.connect()
    # As much as it may be behind, once the other was cut: a busy machine must not make it a client that does not read.
    connection.request("POST", "/predictions/pours", b"8")
    began = time.monotonic()

    response = connection.getresponse()
    body = response.read()

    assert (response.status, len(body)) == (200, 8 * MIB + 3)
    assert time.monotonic() - began < 20.0
    assert anonymous(pouring.pid) - before < 30 * MIB
    assert not silent.ended().endswith(b"0\r\n\r\n")
    connection.close()


def test_large_answers_that_nobody_reads_are_bounded_and_the_rest_is_told(pouring: Served) -> None:
    pouring.register("pours")
    before = anonymous(pouring.pid)
    silent = Silent(pouring, *[b"10"] * 20, headers=b"X-Whole: 1\r\n")

    other = pouring.ask("/predictions/pours", b"10", X_Whole="1")  # after those

    assert (other.status, len(other.body)) == (200, 10 * MIB)
    assert anonymous(pouring.pid) - before < 64 * MIB
    silent.socket.shutdown(socket.SHUT_WR)
    assert b"(max_sending_bytes)" in silent.ended()


def test_head_is_answered_without_pieces_and_the_connection_goes_on(counting: Served) -> None:
    connection = counting.connect()
    for method, body in (("HEAD", b""), ("POST", b"0 1 2 end"), ("HEAD", b""), ("GET", b"0 1 2 end")):
        connection.request(method, "/predictions/counts", b"go", {"Content-Type": "text/plain"})
        response = connection.getresponse()

        assert (response.status, response.read()) == (200, body)
    connection.close()
