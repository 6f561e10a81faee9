"""A daemon of which too much is asked says so at once, and goes on with what it has accepted."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.served import PATIENCE, Served

MIB = 1024 * 1024
HEAD = b"POST /predictions/mirror HTTP/1.1\r\nHost: a\r\nContent-Type: x/y\r\nContent-Length: %d\r\n\r\n"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.mark.thin
def test_who_announces_much_and_sends_nothing_keeps_nobody_out(idle: Served, stack: ExitStack) -> None:
    idle.start("--max-receiving-bytes", "4MiB", "--max-request-size", "4MiB")
    idle.register("mirror")
    address = ("127.0.0.1", idle.port)
    for _ in range(50):
        silent = stack.enter_context(socket.create_connection(address, PATIENCE))
        silent.sendall(HEAD % (4 * MIB))

    answer = idle.ask("/predictions/mirror", bytes(3 * MIB), Content_Type="x/y")

    assert (answer.status, len(answer.body)) == (200, 3 * MIB)
