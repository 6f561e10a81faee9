"""A daemon of which too much is asked says so at once, and goes on with what it has accepted."""

import contextlib
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.e2e.served import PATIENCE, Served, eventually

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
    address = ("127.0.0.1", int(idle.url.rpartition(":")[2]))
    for _ in range(50):
        silent = stack.enter_context(socket.create_connection(address, PATIENCE))
        silent.sendall(HEAD % (4 * MIB))

    answer = idle.ask("/predictions/mirror", bytes(3 * MIB), Content_Type="x/y")

    assert (answer.status, len(answer.body)) == (200, 3 * MIB)


def test_slow_uploads_have_a_bound_together_and_who_finds_no_room_is_told_to_come_again(
    idle: Served, stack: ExitStack
) -> None:
    idle.start("--max-receiving-bytes", "4MiB", "--max-request-size", "4MiB")
    idle.register("mirror")
    address = ("127.0.0.1", int(idle.url.rpartition(":")[2]))
    uploads = [stack.enter_context(socket.create_connection(address, PATIENCE)) for _ in range(5)]
    for upload in uploads:
        with contextlib.suppress(OSError):  # the daemon may have hung up on what it would not read
            upload.sendall(HEAD % MIB + bytes(MIB - 1))

    refused = select.select(uploads, [], [], PATIENCE)[0]

    assert refused
    for upload in refused:
        answer = upload.recv(4096)
        assert answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in answer
    for upload in uploads:
        upload.close()
    eventually(lambda: idle.ask("/predictions/mirror", bytes(MIB)).status == 200, "there is room again")
