"""Bodies that go through shared memory arrive as they were sent; many at once, and beside kills, in `make chaos`."""

import random
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.e2e.served import Served

KIB = 1024
MIB = 1024 * KIB


def test_every_byte_arrives(served: Served) -> None:
    served.register("mirror")

    for size in (1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, 10 * MIB):
        body = random.Random(size).randbytes(size)
        answer = served.ask("/predictions/mirror", body, content_type="application/octet-stream")
        assert (answer.status, answer.body == body) == (200, True), size


@pytest.mark.thin
def test_large_requests_leave_no_traceback_in_a_log_of_the_daemon(served: Served) -> None:
    served.register("mirror", "--batch-size", "4", "--workers", "1")
    names = [b"body", *(b"f%d" % number for number in range(16))]
    fields = b"&".join(name + b"=" + b"x" * (60 * KIB) for name in names)  # each too small for the arena

    ask = partial(served.ask, "/predictions/mirror", fields, content_type="application/x-www-form-urlencoded")

    with ThreadPoolExecutor(8) as clients:
        answers = [each.result() for each in [clients.submit(ask) for _ in range(24)]]

    assert {each.status for each in answers} == {200}, answers[0]
    assert served.new_tracebacks() == []
    assert (served.folder / "state" / "logs" / "start.log").stat().st_size == 0
