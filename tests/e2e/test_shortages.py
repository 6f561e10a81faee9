"""Shortages of the machine: disk, the right to write, descriptors, a reliable clock."""

import contextlib
import http.client
import itertools
import os
import resource
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.served import PATIENCE, Served, eventually

_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE = 24, 1  # prctl(2), capabilities(7)
FEW = 100  # descriptors


def few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, FEW))


@pytest.fixture
def small_disk(idle: Served) -> Iterator[Path]:
    """A state directory of one megabyte."""
    state = idle.folder / "state"
    state.mkdir(mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1M,mode=700", "tmpfs", str(state)], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
    yield state
    idle.stop()
    subprocess.run(["umount", "-l", str(state)], check=True)


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_full_disk_refuses_what_is_new_and_a_daemon_starts_on_it_with_what_it_had(
    idle: Served, small_disk: Path
) -> None:
    idle.start()
    idle.register("echo")
    with (small_disk / "filler").open("wb", 0) as filler, contextlib.suppress(OSError):
        while True:
            filler.write(bytes(4096))

    refused = idle.run("register", idle.pack("mirror"))

    assert refused.returncode == 1
    assert f"`mirror.mar` cannot be unpacked into `{small_disk}/models`: No space left on device." in refused.stderr
    assert len(list((small_disk / "models").iterdir())) == 1
    idle.tsctl("stop")
    idle.start()
    eventually(lambda: idle.ask("/predictions/echo", b"x").status == 200, "it is restored")
    assert [model["name"] for model in idle.status["models"]] == ["echo"]  # nothing is half registered

    (small_disk / "filler").unlink()
    idle.tsctl("register", "mirror.mar")
    assert idle.ask("/predictions/mirror", b"x").body == b"x"


@pytest.mark.thin
def test_without_descriptors_clients_are_turned_away_and_the_operator_is_heard(idle: Served, opened: ExitStack) -> None:
    assert idle.run("start", preexec_fn=few_descriptors).returncode == 0
    idle.note_address()
    idle.register("echo")
    address = ("127.0.0.1", idle.port)
    kept = opened.enter_context(contextlib.closing(idle.connect()))
    kept.putrequest("POST", "/predictions/echo")
    kept.putheader("Content-Length", "1")
    kept.endheaders()
    with ExitStack() as many:
        crowd = []
        for number in range(2 * FEW):
            crowd.append(many.enter_context(socket.create_connection(address, PATIENCE)))
            if number < FEW:
                crowd[-1].send(b"G")  # an idle one would make room
        told = crowd[-1].recv(4096)
        before = cpu_of(idle.pid)

        kept.send(b"x")
        answer = kept.getresponse()
        answer.read()
        idle.register("mirror")

        assert told.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: 1\r\n" in told
        assert answer.status == 200
        assert cpu_of(idle.pid) - before < 1.0  # it does not turn in circles
    eventually(lambda: idle.ask("/predictions/mirror", b"x").status == 200, "connections are accepted again")
    assert "connections are open: rejecting further ones with 503" in idle.log()


def test_when_descriptors_run_out_altogether_the_daemon_lives_and_accepts_again(
    idle: Served, opened: ExitStack
) -> None:
    idle.start()
    idle.register("echo")
    address = ("127.0.0.1", idle.port)
    kept = opened.enter_context(contextlib.closing(idle.connect()))
    kept.request("POST", "/predictions/echo", b"x")
    assert kept.getresponse().read()
    pid = idle.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    full = first_free_descriptor(pid, kept, idle.folder / "state" / "logs" / "access.log")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (full, limits[1]))
    with ExitStack() as many:
        crowd = [many.enter_context(socket.create_connection(address, PATIENCE)) for _ in range(20)]
        before = cpu_of(pid)

        closed = [connection.recv(1) for connection in crowd]  # at once, rather than left to wait
        kept.request("POST", "/predictions/echo", b"x")

        assert closed == [b""] * 20
        assert kept.getresponse().read()
        assert cpu_of(pid) - before < 1.0
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (full + 1, limits[1]))
    archive = idle.pack("mirror")

    def told() -> bool:
        """The connection takes the free descriptor; if the daemon has another file open, the connection is closed."""
        refused = idle.run("register", archive)
        assert refused.returncode == 1
        return "Too many open files" in refused.stderr

    eventually(told, "an operator is told why nothing can be registered")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert idle.ask("/predictions/echo", b"x").status == 200
    assert [model["name"] for model in idle.status["models"]] == ["echo"]


def first_free_descriptor(pid: int, kept: http.client.HTTPConnection, log: Path) -> int:
    """Return the number that the daemon's next descriptor gets, once it opens and closes none any more.

    Earlier connections are closed by the event loop, and files that a thread reads by that thread: the descriptors are
    the same while the loop answers ten requests. The access log is opened when its first lines are written.
    """
    listings: list[set[int]] = []
    eventually(log.exists, "the access log is opened")

    def unchanged() -> bool:
        listings.append({int(name) for name in os.listdir(f"/proc/{pid}/fd")})
        kept.request("POST", "/predictions/echo", b"x")
        assert kept.getresponse().read()
        return len(listings) >= 10 and all(each == listings[-1] for each in listings[-10:])

    eventually(unchanged, "earlier connections are closed")
    return next(number for number in itertools.count() if number not in listings[-1])


def cpu_of(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_clock_that_jumps_by_years_changes_nothing(idle: Served) -> None:
    shim = idle.folder / "shim"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(
        "import itertools, time\n"
        "real, jumps = time.time, itertools.cycle((0.0, 1e8, -1e8, 3.0))\n"
        "time.time = lambda: real() + next(jumps)\n"
    )
    idle.environment["PYTHONPATH"] = str(shim)
    idle.start("--response-timeout", "60", "--startup-timeout", "60")
    idle.register("echo", "--batch-size", "4", "--max-delay", "20", "--batching", "fixed")

    answers = [idle.ask("/predictions/echo", b"x", x_request_deadline_ms="60000") for _ in range(6)]

    assert [answer.status for answer in answers] == [200] * 6
    assert len(idle.pids("echo")) == 1
    logged = partial(idle.log, "access.log")
    eventually(lambda: len({line[:4] for line in logged().splitlines()}) > 1, "the log shows that the clock did jump")
