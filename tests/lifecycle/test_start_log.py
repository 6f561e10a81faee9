"""`start.log` stays short while the daemon runs and over starts that fail, and what was printed last is kept."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tsctl import starting
from tsctl.daemon.core.clock import FakeClock
from tsctl.daemon.lifecycle.start_log import MOST_BYTES, shorten
from tsctl.daemon.server.observation import PRINTED_LOOK_EVERY, PrintedLog
from tsctl.starting import NotStarted, started


@pytest.fixture(params=[os.O_APPEND, 0], ids=["appended", "written"])
def descriptor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "start.log", os.O_WRONLY | os.O_CREAT | request.param, 0o600)
    yield opened
    os.close(opened)


def test_a_long_file_is_emptied_and_its_end_kept(descriptor: int, tmp_path: Path) -> None:
    clock = FakeClock()
    PrintedLog(clock, descriptor).begin()
    os.write(descriptor, b"early" + b"x" * MOST_BYTES + b"late")

    clock.advance(PRINTED_LOOK_EVERY)
    os.write(descriptor, b"next")

    assert (tmp_path / "start.log").read_bytes() == b"next"
    kept = tmp_path / "start.log.1"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert len(kept.read_bytes()) == MOST_BYTES and kept.read_bytes().endswith(b"xlate")


def test_a_daemon_that_prints_without_end_keeps_two_files(descriptor: int, tmp_path: Path) -> None:
    clock = FakeClock()
    PrintedLog(clock, descriptor).begin()
    for _ in range(5):
        os.write(descriptor, b"x" * (MOST_BYTES + 1))
        clock.advance(PRINTED_LOOK_EVERY)

    assert sorted((each.name, each.stat().st_size) for each in tmp_path.iterdir()) == [
        ("start.log", 0),
        ("start.log.1", MOST_BYTES),
    ]


def test_a_start_that_fails_after_many_others_leaves_its_own_reason_and_the_end_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "start.log").write_bytes(b"early" + b"x" * MOST_BYTES + b"late\n")
    monkeypatch.setattr(starting, "DAEMON", (sys.executable, "-c", "print('no luck'); raise SystemExit(3)"))

    with pytest.raises(NotStarted) as raised:
        started((), tmp_path)

    assert raised.value.details == "no luck"
    assert (logs / "start.log").read_bytes() == b"no luck\n"
    kept = (logs / "start.log.1").read_bytes()
    assert (len(kept), kept[-6:]) == (MOST_BYTES, b"xlate\n")


def test_a_file_of_a_user_s_own_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "mine.log"
    with open(file, "wb", 0) as opened:
        opened.write(b"x" * (MOST_BYTES + 1))
        shorten(opened.fileno())

    assert file.stat().st_size == MOST_BYTES + 1
    assert list(tmp_path.iterdir()) == [file]


def test_a_pipe_is_left_alone() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"x")

    shorten(writing)

    assert os.read(reading, 10) == b"x"
    os.close(reading)
    os.close(writing)
