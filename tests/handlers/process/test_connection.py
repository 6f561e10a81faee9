"""The worker's end of the socketpair keeps whole frames, and notices what a handler does to it."""

import fcntl
import os
import socket
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tsctl.handlers import wire
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.process import connection as module
from tsctl.handlers.process.connection import DaemonConnection, Disconnected, take_over

HELLO = wire.Hello(7)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The daemon's end and the worker's; the tests may close either."""
    ours, theirs = socket.socketpair()
    yield ours, theirs
    ours.close()
    theirs.detach()  # a test may have closed it behind its back


def test_what_is_sent_is_one_frame(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair

    DaemonConnection(theirs).send(HELLO)

    assert ours.recv(1024) == wire.encode(HELLO)


def test_answers_that_do_not_fit_a_frame_become_failures(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "MAX_FRAME", 1000)
    ours, theirs = pair

    DaemonConnection(theirs).send(wire.Done(1, [wire.Answer(200, b"x" * 600)] * 2, 0.5))

    done = wire.decode_for_daemon(ours.recv(2000)[wire.LENGTH.size :])
    assert isinstance(done, wire.Done)
    assert [each.status for each in done.answers] == [503, 503]


def test_who_waits_is_idle_once_and_not_again_too_soon(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BETWEEN", 0.1)
    ours, theirs = pair
    idle: list[float] = []

    def note_and_send() -> None:
        idle.append(time.monotonic())
        ours.sendall(wire.encode(wire.Threads(len(idle))))

    connection = DaemonConnection(theirs, note_and_send)
    received = [connection.receive() for _ in range(3)]

    assert received == [wire.Threads(1), wire.Threads(2), wire.Threads(3)]
    assert all(later - earlier >= 0.1 for earlier, later in pairwise(idle))


@pytest.mark.parametrize(
    ("seldom", "times"),
    [
        pytest.param(module.SELDOM, 0, id="it is not idle"),
        pytest.param(0.0, 5, id="after a long time it counts as idle all the same"),
    ],
)
def test_who_gets_one_message_after_the_other_never_waits(
    seldom: float, times: int, pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SELDOM", seldom)
    ours, theirs = pair
    idle: list[None] = []
    connection = DaemonConnection(theirs, lambda: idle.append(None))
    for count in range(5):
        ours.sendall(wire.encode(wire.Threads(count)))

    received = [connection.receive() for _ in range(5)]

    assert received == [wire.Threads(count) for count in range(5)]
    assert len(idle) == times


def test_a_burst_after_a_long_rest_is_not_held_up(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    now, idle = [1000.0], list[float]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def come_to_rest() -> None:
        idle.append(now[0])
        ours.sendall(b"".join(wire.encode(wire.Threads(count)) for count in range(3)))

    connection = DaemonConnection(theirs, come_to_rest)

    assert connection.receive() == wire.Threads(0)
    now[0] += 2 * module.SELDOM
    assert [connection.receive(), connection.receive()] == [wire.Threads(1), wire.Threads(2)]
    assert idle == [1000.0]


def test_frames_of_two_threads_do_not_mix(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    connection = DaemonConnection(theirs)
    answers = [wire.Done(number, [wire.Answer(200, bytes([number]) * 300_000)], 0.0) for number in range(4)]
    threads = [threading.Thread(target=connection.send, args=(answer,)) for answer in answers]
    reader, received = FrameReader(), list[wire.ToDaemon]()

    for thread in threads:
        thread.start()
    while len(received) < len(answers):
        received += [wire.decode_for_daemon(frame) for frame in reader.feed(ours.recv(65536))]
    for thread in threads:
        thread.join()

    assert sorted(message.batch for message in received if isinstance(message, wire.Done)) == [0, 1, 2, 3]


def test_a_descriptor_that_was_closed_is_a_connection_lost(pair: tuple[socket.socket, socket.socket]) -> None:
    _, theirs = pair
    connection = DaemonConnection(theirs)

    os.close(theirs.fileno())

    with pytest.raises(Disconnected):
        connection.send(HELLO)
    with pytest.raises(Disconnected):
        connection.receive()


@pytest.mark.parametrize("option", [pytest.param(module.SO_COOKIE, id=""), pytest.param(9999, id="without cookies")])
def test_nothing_is_written_to_what_took_its_place(
    pair: tuple[socket.socket, socket.socket], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: int
) -> None:
    monkeypatch.setattr(module, "SO_COOKIE", option)
    daemon, theirs = pair
    connection = DaemonConnection(theirs)
    connection.send(HELLO)
    assert daemon.recv(1000)
    with (tmp_path / "theirs").open("wb") as file:
        os.dup2(file.fileno(), theirs.fileno())

    with pytest.raises(Disconnected):
        connection.send(HELLO)
    with pytest.raises(Disconnected):
        connection.receive()

    assert (tmp_path / "theirs").read_bytes() == b""
    os.close(theirs.fileno())


def test_the_daemon_that_is_gone_is_the_end_and_no_lost_connection(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    connection = DaemonConnection(theirs)
    ours.close()

    assert connection.receive() is None
    with pytest.raises(BrokenPipeError):
        connection.send(HELLO)
    theirs.close()


def test_a_forked_child_is_not_heard_and_ends(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    connection = DaemonConnection(theirs)
    pid = os.fork()
    if pid == 0:
        connection.send(HELLO)  # does not return
        os._exit(9)

    _, status = os.waitpid(pid, 0)
    theirs.shutdown(socket.SHUT_WR)

    assert os.waitstatus_to_exitcode(status) == 0
    assert ours.recv(1024) == b""
    theirs.close()


def test_a_child_does_not_keep_the_connection_open(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    connection = DaemonConnection(theirs)
    connection.leave_in_child()

    assert ours.recv(1024) == b""


def test_it_moves_out_of_the_way_and_is_not_inherited() -> None:
    ours, theirs = socket.socketpair()
    number = theirs.detach()

    moved = take_over(number)

    with ours, moved:
        assert moved.fileno() >= min(4096, os.sysconf("SC_OPEN_MAX") - 1)
        assert fcntl.fcntl(moved.fileno(), fcntl.F_GETFD) & fcntl.FD_CLOEXEC
        moved.sendall(b"still the same")
        assert ours.recv(1024) == b"still the same"
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)


def test_it_waits_as_long_as_it_takes_whatever_a_model_file_has_set_for_sockets() -> None:
    ours, theirs = socket.socketpair()
    socket.setdefaulttimeout(5.0)
    try:
        moved = take_over(theirs.detach())
    finally:
        socket.setdefaulttimeout(None)

    with ours, moved:
        assert moved.gettimeout() is None
