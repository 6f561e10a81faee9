"""Pieces of answers between a worker and the clients of its batch: credit, cuts, and the response timeout."""

import pytest

from tests.workers.test_local import Conversation
from tsctl.daemon.core.job import Job, Piece, Reply
from tsctl.daemon.workers.engine import Worker
from tsctl.handlers import wire
from tsctl.handlers.credit import OVERHEAD, PATIENCE, WINDOW
from tsctl.handlers.frame_reader import FrameReader

LARGE = wire.Answer(200, bytes(WINDOW - OVERHEAD))


class Clients:
    """The pool's pieces: `read` holds those whose clients read at once, `gone` those whose clients have left."""

    def __init__(self, bench: Conversation) -> None:
        self.pieces: list[Piece] = []
        self.read: set[str] = set()
        self.gone: set[str] = set()
        bench.log.streamed = self.streamed  # type: ignore[method-assign]

    def streamed(self, worker: Worker, job: Job, piece: Reply) -> None:
        assert isinstance(piece, Piece)
        self.pieces.append(piece)
        if piece.flow is not None and job.id not in self.gone:
            piece.flow.wanted = True
            if job.id in self.read:
                piece.flow.drained()


@pytest.fixture
def bench() -> Conversation:
    """A worker that runs batch 1 of `a` and `b`."""
    bench = Conversation(response_timeout=1.0)
    bench.process.say(wire.Loaded(0.1, False))
    bench.predict(1, "ab")
    bench.process.transport.written.clear()
    return bench


@pytest.fixture
def clients(bench: Conversation) -> Clients:
    return Clients(bench)


def told(bench: Conversation) -> list[wire.ToWorker]:
    """Return the worker's received messages."""
    return [wire.decode_for_worker(frame) for frame in FrameReader().feed(bytes(bench.process.transport.written))]


def test_a_worker_is_told_once_that_a_client_has_gone(bench: Conversation, clients: Clients) -> None:
    clients.gone = {"a"}

    bench.process.say(wire.Chunk(1, [(0, LARGE)]), wire.Chunk(1, [(0, LARGE)]))

    assert told(bench) == [wire.Credit(1, 0, 0)]


def test_a_client_that_reads_slowly_is_known_to_hold_its_batch_up(bench: Conversation, clients: Clients) -> None:
    jobs = bench.worker.in_flight.running.jobs  # type: ignore[union-attr]
    clients.read = {"a"}
    bench.process.say(wire.Chunk(1, [(0, wire.Answer(200, b"small"))]))
    assert not any(job.held_up for job in jobs)

    bench.process.say(wire.Chunk(1, [(1, LARGE)]))

    assert all(job.held_up for job in jobs), "the worker waits with the answers to all of them"


def test_a_cut_ends_the_answer_with_the_reason(bench: Conversation, clients: Clients) -> None:
    bench.process.say(wire.Chunk(1, [(1, LARGE)]), wire.Cut(1, [1]))

    assert [piece.unread for piece in clients.pieces] == [
        "",
        "The client did not read the streamed answer; its batch waited 2 s, and continues without it.",
    ]
    assert told(bench) == []


def test_after_a_cut_the_response_timeout_is_the_workers_own(bench: Conversation, clients: Clients) -> None:
    bench.process.say(wire.Chunk(1, [(0, LARGE)]))
    bench.clock.advance(PATIENCE)
    bench.process.say(wire.Cut(1, [0]))

    bench.clock.advance(1.0)

    assert bench.process.life.killed == ["response timeout of 1 s"]


@pytest.mark.parametrize("row", [-1, 2])
def test_a_cut_of_nobody_is_what_cannot_be(bench: Conversation, clients: Clients, row: int) -> None:
    bench.process.say(wire.Cut(1, [row]))

    said = f"it sent an invalid message to the daemon (row {row} of a batch of 2)"
    assert bench.process.life.killed == [said]


def test_a_cut_of_a_batch_that_is_over_is_nothing(bench: Conversation, clients: Clients) -> None:
    bench.process.say(wire.Cut(5, [0]))

    assert clients.pieces == []
    assert bench.process.life.killed == []
