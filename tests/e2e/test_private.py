"""A daemon that belongs to one process: no TCP, and an end with its parent."""

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, Served, eventually, running

ECHO = ("POST", "/predictions/echo")


def tcp_listeners(pid: int) -> list[str]:
    """Return the inodes of a process's listening TCP sockets."""
    own = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            own.add(os.readlink(each))
    tables = [Path(f"/proc/{pid}/net/{name}").read_text() for name in ("tcp", "tcp6")]
    lines = [line.split() for table in tables for line in table.splitlines()]
    return [words[9] for words in lines if words[3] == "0A" and f"socket:[{words[9]}]" in own]


@contextlib.contextmanager
def owned(served: Served, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A daemon of the block's own, without TCP; at the block's end, the pipe is closed and the daemon waited for."""
    reading, writing = os.pipe()
    ready, told = os.pipe()
    with open(ready, "rb") as said:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tsctl.daemon", "--background", f"--parent-fd={reading}", f"--ready-fd={told}",
             "--inference-address=none", *arguments],
            env=served.environment, pass_fds=(reading, told), stdin=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(reading)
        os.close(told)
        assert select.select([said], [], [], PATIENCE)[0]
        assert b'"inferenceAddress": null' in said.read()
    try:
        yield process
    finally:
        os.close(writing)
        code = process.wait(PATIENCE)
    assert code == 0


@pytest.mark.thin
def test_a_daemon_without_tcp_predicts_on_its_socket_until_its_parent_is_gone(idle: Served) -> None:
    with owned(idle, "--max-request-size=1KiB"):
        # A batch that is not full would wait until the test gives up.
        idle.register("echo", "--batch-size", "4", "--max-delay", "100000", "--batching", "fixed")
        with ThreadPoolExecutor(4) as threads:
            answers = list(threads.map(lambda body: idle.command(*ECHO, body), [b"x"] * 4))
        workers = idle.pids("echo")

        assert [answer.status for answer in answers] == [200] * 4
        assert idle.command(*ECHO, b"x" * 1025).status == 413
        assert tcp_listeners(idle.pid) == []
        assert "on the control socket" in idle.tsctl("status")

    eventually(lambda: not any(map(running, workers)), "the workers end with the daemon")
    assert not Path(idle.environment["TSCTL_SOCKET"]).exists()


def test_an_upgraded_daemon_ends_with_the_parent_of_the_first(idle: Served) -> None:
    with owned(idle) as process:
        idle.register("echo")
        idle.tsctl("upgrade")
        pid = idle.pid
        assert process.wait(PATIENCE) == 0
        assert running(pid)
        assert idle.command(*ECHO, b"x").status == 200

    eventually(lambda: not running(pid), "the new daemon stops")
