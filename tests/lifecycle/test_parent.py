"""A daemon sees the end of its parent through a pipe."""

import asyncio
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tsctl.daemon.__main__ import launch_arguments, main, parse_arguments
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.lifecycle.parent import check_parent, watch_parent
from tsctl.daemon.lifecycle.shutdown import Shutdown


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for each in (reading, writing):
        with suppress(OSError):
            os.close(each)


async def test_the_end_of_the_parent_is_told_once(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    told: asyncio.Queue[bool] = asyncio.Queue()
    check_parent(reading)
    watch_parent(reading, lambda: told.put_nowait(True))

    os.close(writing)
    await asyncio.wait_for(told.get(), 10)
    for _ in range(3):
        await asyncio.sleep(0)

    assert told.empty()


async def test_data_is_no_end(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    told: list[bool] = []
    check_parent(reading)
    watch_parent(reading, lambda: told.append(True))

    os.write(writing, b"x" * 10_000)
    for _ in range(6):
        await asyncio.sleep(0)

    assert told == []
    with pytest.raises(BlockingIOError):  # all of it has been read
        os.read(reading, 1)
    asyncio.get_running_loop().remove_reader(reading)


async def test_a_socket_does_as_well() -> None:
    ours, theirs = socket.socketpair()
    gone = asyncio.Event()
    check_parent(ours.fileno())
    watch_parent(ours.fileno(), gone.set)

    ours.send(b"never read by the parent, so that its end is a reset")
    theirs.close()
    await asyncio.wait_for(gone.wait(), 10)

    ours.close()


def test_workers_do_not_inherit_the_pipe(pipe: tuple[int, int]) -> None:
    os.set_inheritable(pipe[0], True)

    check_parent(pipe[0])

    assert not os.get_inheritable(pipe[0])


def test_a_file_has_no_other_end(tmp_path: Path) -> None:
    with open(tmp_path / "file", "w") as file, pytest.raises(StartError, match="neither a pipe nor a socket"):
        check_parent(file.fileno())


def test_the_end_of_the_parent_is_no_signal_to_hurry(tmp_path: Path) -> None:
    shutdown = Shutdown(600.0, tmp_path / "pid", supervised=False)

    shutdown.parent_gone()
    shutdown._signalled()

    assert shutdown.wanted.is_set()
    assert not shutdown._hurry.is_set()
    shutdown._signalled()
    assert shutdown._hurry.is_set()


def test_the_end_of_the_parent_is_not_passed_on_as_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(number))
    shutdown = Shutdown(600.0, tmp_path / "pid", supervised=True)
    shutdown.successor = os.getpid()

    shutdown.parent_gone()

    assert killed == []
    shutdown._signalled()
    assert killed == [signal.SIGTERM]


def test_an_upgrade_hands_the_descriptor_on() -> None:
    assert launch_arguments(parse_arguments(["--parent-fd=7", "--grace=1"])) == ["--grace=1", "--parent-fd=7"]


def test_a_descriptor_that_is_not_open_is_named_and_stops_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--parent-fd=999"]) == 1
    assert capsys.readouterr().err == "error: descriptor 999 of `--parent-fd` is not open\n"
