"""Values in the arena are not sent: their locations are, and the worker finds the values there."""

import socket
from collections.abc import Iterator

import pytest

from tsctl.daemon.core.arena import Arena
from tsctl.daemon.core.job import Batch, Job, Param
from tsctl.daemon.workers.frames import outcomes_of, predict_of, share
from tsctl.handlers import wire
from tsctl.handlers.process.connection import DaemonConnection


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def job(*params: Param) -> Job:
    return Job("r", params, [("a", "b")], 0.0, lambda reply: None)


def test_a_worker_finds_values_of_the_frame_and_of_the_arena(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    arena = Arena(1024**2)
    stored = arena.take(100_000)
    assert stored is not None
    stored.view[:] = b"ab" * 50_000
    worker = DaemonConnection(theirs)
    jobs = [job(Param("x", "t", b"small"), Param("y", "", stored)), job(Param("z", "", stored.part(1, 4)))]

    share(ours, arena)
    frame = wire.encode(predict_of(Batch(7, jobs, "full"))[0])
    ours.sendall(frame)
    worker.map_arena()
    message = worker.receive()

    assert len(frame) < 200
    assert isinstance(message, wire.Predict) and message.batch == 7
    values = [[(name, kind, bytes(value)) for name, kind, value in row.params] for row in message.rows]
    assert values == [[("x", "t", b"small"), ("y", "", b"ab" * 50_000)], [("z", "", b"bab")]]


def test_without_an_arena_the_first_message_is_just_that(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    worker = DaemonConnection(theirs)

    share(ours, None)
    ours.sendall(wire.encode(wire.Threads(3)) + wire.encode(wire.Threads(4)))
    worker.map_arena()

    assert [worker.receive(), worker.receive()] == [wire.Threads(3), wire.Threads(4)]


def test_a_daemon_that_has_gone_is_seen(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    worker = DaemonConnection(theirs)
    ours.close()

    worker.map_arena()

    assert worker.receive() is None


def test_a_failed_row_carries_its_traceback_and_an_unknown_row_is_ignored() -> None:
    batch = Batch(1, [job(), job()], "full")
    answers = [wire.Answer(200, b"a"), wire.Answer(500, b"b", error="E")]

    outcomes = outcomes_of(batch, wire.Done(1, answers, 0.5, failures=[wire.HandlerFailure([1, 7], "Traceback")]))

    replies = [outcome.reply for outcome in outcomes if outcome.reply is not None]
    assert [(reply.status, reply.body, reply.error, reply.traceback) for reply in replies] == [
        (200, b"a", "", ""), (500, b"b", "E", "Traceback"),
    ]  # fmt: skip
