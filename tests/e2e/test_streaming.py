"""Answers in pieces, from a real handler to a real client."""

import http.client
import time

import pytest

from tests.e2e.served import Served


@pytest.fixture(scope="module")
def counting(shared: Served) -> Served:
    shared.register("counts")
    return shared


def test_a_client_reads_the_first_piece_before_the_last_is_made(counting: Served) -> None:
    connection = counting.connect()
    connection.request("POST", "/predictions/counts", b"go", {"Content-Type": "text/plain"})
    response = connection.getresponse()
    first = response.read1()
    began = time.monotonic()

    rest = response.read()

    assert first == b"0 "
    assert rest == b"1 2 end"
    assert time.monotonic() - began > 0.2  # the rest was not there yet
    assert response.getheader("Transfer-Encoding") == "chunked"
    connection.close()


def test_an_error_in_the_middle_is_a_cut_and_not_an_end(counting: Served) -> None:
    connection = counting.connect()
    connection.request("POST", "/predictions/counts", b"fail", {"Content-Type": "text/plain"})
    response = connection.getresponse()

    with pytest.raises((http.client.IncompleteRead, ConnectionResetError)):
        response.read()

    connection.close()


def test_head_is_answered_without_pieces_and_the_connection_goes_on(counting: Served) -> None:
    connection = counting.connect()
    for method, body in (("HEAD", b""), ("POST", b"0 1 2 end"), ("HEAD", b""), ("GET", b"0 1 2 end")):
        connection.request(method, "/predictions/counts", b"go", {"Content-Type": "text/plain"})
        response = connection.getresponse()

        assert (response.status, response.read()) == (200, body)
    connection.close()
