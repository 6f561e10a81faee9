"""The core alone: a real daemon with an empty list of extensions."""

import concurrent.futures
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, Served, eventually

pytestmark = pytest.mark.thin  # one second
PROGRAM = "import sys; from tsctl.daemon.__main__ import main; sys.exit(main(sys.argv[1:], extensions=()))"


@pytest.fixture
def core(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    command = [sys.executable, "-c", PROGRAM, "--background"]
    with subprocess.Popen(command, env=served.environment, stdin=subprocess.DEVNULL) as daemon:
        eventually(lambda: served.run("status").returncode == 0, "the daemon started")
        served.note_address()
        yield served
        served.stop()
        assert daemon.wait(PATIENCE) == 0


def test_the_daemon_serves_without_any_extension(core: Served) -> None:
    core.register("echo", "--batch-size", "4", "--max-delay", "200", "--workers", "1")

    with concurrent.futures.ThreadPoolExecutor(8) as clients:
        answers = list(clients.map(lambda number: core.ask("/predictions/echo", b"%d" % number), range(8)))

    assert {answer.status for answer in answers} == {200}
    described = core.describe("echo")
    assert described["batchSize"] == 4
    core.tsctl("scale", "echo", "2")
    core.tsctl("set", "echo", "--max-delay", "5")
    assert "echo" in core.tsctl("ls")
    assert core.describe("echo")["tsctl"]["batching"]["sizes"]
    assert [core.ask(path, b"{}").status for path in ("/v1/completions", "/metrics")] == [404, 404]

    before = {worker["pid"] for worker in core.describe("echo")["workers"]}
    os.kill(min(before), signal.SIGKILL)
    eventually(
        lambda: len({w["pid"] for w in core.describe("echo")["workers"] if w["status"] == "READY"} - before) == 1,
        "another worker took its place",
    )
    assert core.ask("/predictions/echo", b"x").status == 200
    core.tsctl("unregister", "echo")
