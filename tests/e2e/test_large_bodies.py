"""Bodies that go through shared memory arrive as they were sent; many at once, and beside kills, in `make chaos`."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.served import Served

KIB = 1024
MIB = 1024 * KIB


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("size", [1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 10 * MIB])
def test_every_byte_arrives(served: Served, size: int) -> None:
    served.register("mirror")
    body = noise(size)

    answer = served.ask("/predictions/mirror", body, content_type="application/octet-stream")

    assert answer.status == 200
    assert answer.body == body


@pytest.mark.thin
def test_large_requests_leave_no_traceback_in_a_log_of_the_daemon(served: Served) -> None:
    served.register("mirror", "--batch-size", "4", "--workers", "1")
    names = [b"body", *(b"f%d" % number for number in range(16))]
    fields = b"&".join(name + b"=" + b"x" * (60 * KIB) for name in names)  # each too small for the arena

    with ThreadPoolExecutor(8) as clients:
        answers = list(
            clients.map(
                lambda _: served.ask("/predictions/mirror", fields, content_type="application/x-www-form-urlencoded"),
                range(24),
            )
        )

    assert {each.status for each in answers} == {200}, answers[0]
    assert served.new_tracebacks() == []
    assert (served.folder / "state" / "logs" / "start.log").read_bytes() == b""
