"""A daemon of which too much is asked says so at once, and goes on with what it has accepted."""

import contextlib
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.e2e.served import PATIENCE, Served, eventually

MIB = 1024 * 1024
HEAD = b"POST /predictions/mirror HTTP/1.1\r\nHost: a\r\nContent-Type: x/y\r\nContent-Length: %d\r\n\r\n"


def anonymous(pid: int) -> int:
    """Bytes of a process that no file holds: its heap, and the arena."""
    with open(f"/proc/{pid}/status") as status:
        return sum(int(line.split()[1]) for line in status if line.startswith(("RssAnon:", "RssShmem:"))) * 1024


def upload_all_but_a_byte(upload: socket.socket, answers: list[bytes]) -> None:
    """Note the answer, if one comes before the connection is closed."""
    with contextlib.suppress(OSError):  # the daemon may have hung up on what it would not read
        upload.sendall(HEAD % MIB + bytes(MIB - 1))
    with contextlib.suppress(OSError):
        answers.append(upload.recv(4096))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def test_slow_uploads_have_a_bound_together_and_the_rest_is_told_to_come_again(idle: Served, stack: ExitStack) -> None:
    idle.start("--max-receiving-bytes", "4MiB", "--max-request-size", "4MiB")
    idle.register("mirror")
    before = anonymous(idle.pid)
    address = ("127.0.0.1", int(idle.url.rpartition(":")[2]))
    uploads = [stack.enter_context(socket.create_connection(address, PATIENCE)) for _ in range(40)]
    refused: list[bytes] = []
    with ThreadPoolExecutor(len(uploads)) as clients:
        for upload in uploads:
            clients.submit(upload_all_but_a_byte, upload, refused)
        # 40 MiB come, no body is complete, and 4 MiB may be there.
        eventually(lambda: len(list(filter(None, refused))) >= 20, "those without room are refused")
        told, held = list(filter(None, refused)), anonymous(idle.pid) - before
        for upload in uploads:
            with contextlib.suppress(OSError):  # closed by the other side
                upload.shutdown(socket.SHUT_RDWR)

    assert all(answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in answer for answer in told)
    assert held < 20 * MIB
    for upload in uploads:
        upload.close()
    eventually(lambda: idle.ask("/predictions/mirror", bytes(MIB)).status == 200, "there is room again")


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
