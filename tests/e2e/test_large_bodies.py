"""Bodies that go through shared memory arrive as they were sent, and leave nothing behind."""

import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.served import Served, eventually

KIB = 1024
MIB = 1024 * KIB


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def shared_memory(pid: int) -> int:
    """Bytes of shared memory that a process has in use."""
    (line,) = (line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssShmem"))
    return int(line.split()[1]) * KIB


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


def test_a_large_file_in_a_form_arrives(served: Served) -> None:
    served.register("mirror")
    content = noise(MIB)
    head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'

    answer = served.ask(
        "/predictions/mirror", head + content + b"\r\n--b--\r\n", content_type="multipart/form-data; boundary=b"
    )

    assert answer.body == content


def test_many_at_once_do_not_mix_and_their_memory_is_given_back(served: Served) -> None:
    served.register("mirror", "--batch-size", "4", "--max-delay", "5")
    bodies = [noise(10 * MIB, seed) for seed in range(8)]

    with ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda body: served.ask("/predictions/mirror", body).body, bodies * 2))

    assert [answer == body for answer, body in zip(answers, bodies * 2, strict=True)] == [True] * 16
    assert shared_memory(served.pid) <= 40 * MIB


def test_a_worker_that_is_killed_with_large_bodies_leaves_nobody_waiting(served: Served) -> None:
    config = served.folder / "model-config.yaml"
    config.write_text("retry: true\n")
    served.register("mirror", config_file=config)
    bodies = [noise(MIB, seed) for seed in range(30)]

    with ThreadPoolExecutor(4) as clients:
        asked = [clients.submit(served.ask, "/predictions/mirror", body) for body in bodies]
        eventually(lambda: asked[0].done(), "the first is answered")
        (worker,) = [worker["pid"] for worker in served.describe("mirror")["workers"]]
        os.kill(worker, signal.SIGKILL)
        answers = [each.result() for each in asked]

    assert [answer.body == body for answer, body in zip(answers, bodies, strict=True)] == [True] * 30
