"""Answers in pieces, from a real handler to a real client."""

import contextlib
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


def rest_of(connection: socket.socket) -> bytes:
    """Read what was sent until the daemon ended the connection; return the last bytes of that."""
    last = b""
    with connection, contextlib.suppress(ConnectionResetError):
        while data := connection.recv(2**20):
            last = (last + data)[-100:]
    return last


def test_a_client_that_does_not_read_is_cut_and_its_neighbour_gets_all(idle: Served) -> None:
    idle.start("--max-sending-bytes", "64MiB")
    idle.register("pours", "--batch-size", "2", "--max-delay", "5000", "--batching", "fixed")
    before = anonymous(idle.pid)
    silent = socket.create_connection(("127.0.0.1", idle.port), PATIENCE)
    silent.sendall(b"POST /predictions/pours HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n200")
    connection = idle.connect()
    # As much as it may be behind, once the other was cut: a busy machine must not make it a client that does not read.
    connection.request("POST", "/predictions/pours", b"8")
    began = time.monotonic()

    response = connection.getresponse()
    body = response.read()

    assert (response.status, len(body)) == (200, 8 * MIB + 3)
    assert time.monotonic() - began < 20.0
    assert anonymous(idle.pid) - before < 30 * MIB
    assert not rest_of(silent).endswith(b"0\r\n\r\n")
    connection.close()
