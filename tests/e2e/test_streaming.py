"""Answers in pieces, from a real handler to a real client."""

import http.client
from pathlib import Path

import pytest

from tests.e2e.served import Served


@pytest.fixture(scope="module")
def counting(shared: Served) -> Served:
    shared.register("counts")
    return shared


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


def test_an_error_in_the_middle_is_a_cut_and_not_an_end(counting: Served) -> None:
    connection = counting.connect()
    connection.request("POST", "/predictions/counts", b"fail", {"Content-Type": "text/plain"})
    response = connection.getresponse()

    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        response.read()

    connection.close()
