"""A worker streams no faster than its clients read: real sockets, real threads, and a daemon played by the test."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.handlers.process.row_daemon import on_thread
from tests.handlers.samples import row, write
from tests.handlers.test_worker import load_of
from tsctl.handlers import wire
from tsctl.handlers.credit import GRANT, WINDOW, Windows, cost_of
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.process import schedule as module

PATIENCE = 0.2  # seconds
PIECE = 100_000  # bytes
COUNT = 40  # pieces of each row: 4 MB
STREAMS = f"""
    import threading
    from tsctl.handlers.sdk.streaming import send_intermediate_predict_response as send
    def stream(data, context):
        for _ in range({COUNT}):
            send([bytes({PIECE})] * len(data), context.request_ids, "", 200, context)
        return [b"end"] * len(data)
    def handle(data, context):
        return data and (stream(data, context) if data[0]["body"] == b"stream" else [each["body"] for each in data])
    def threaded(data, context):
        if data:
            thread = threading.Thread(target=stream, args=(data, context))
            thread.start()
            thread.join()
        return data and [b"end"] * len(data)
"""
LANES = f"""
    from tsctl.handlers.builtin.base import BaseHandler
    from tsctl.handlers.sdk.streaming import send_intermediate_predict_response as send
    class Lanes(BaseHandler):
        def initialize(self, context):
            self.initialized = True
        def preprocess(self, data):
            return [bytes(each["body"]) for each in data]
        def inference(self, data):
            for _ in range({COUNT} if data[0] == b"stream" else 0):
                send([bytes({PIECE})] * len(data), self.context.request_ids, "", 200, self.context)
            return data
        def postprocess(self, data):
            return data
"""
GO = wire.Predict(7, [row(b"stream")])
NEXT = wire.Predict(8, [row(b"next")])


class Daemon:
    """The other end; reads what the worker says, and gives credit as a client that reads at once."""

    def __init__(self, sock: socket.socket) -> None:
        self.said: list[wire.ToDaemon] = []
        self._sock = sock
        self._reader = FrameReader()

    def tell(self, *messages: wire.ToWorker) -> None:
        self._sock.sendall(b"".join(map(wire.encode, messages)))

    def hear(self, until: Callable[[wire.ToDaemon], bool], reads: tuple[int, ...] = ()) -> list[wire.ToDaemon]:
        """Listen until something was said; clients of these rows of batch 7 read all that they get."""
        seen = len(self.said)
        while not any(map(until, self.said[seen:])):
            for frame in self._reader.feed(self._sock.recv(65536)):
                message = wire.decode_for_daemon(frame)
                self.said.append(message)
                if isinstance(message, wire.Chunk):
                    self.tell(
                        *[wire.Credit(7, number, cost_of(each)) for number, each in message.pieces if number in reads]
                    )
        return self.said[seen:]

    def streamed(self, number: int = 0, batch: int = 7) -> int:
        """Bytes of a row so far."""
        chunks = [each for each in self.said if isinstance(each, wire.Chunk) and each.batch == batch]
        return sum(len(piece.body) for chunk in chunks for where, piece in chunk.pieces if where == number)


Start = Callable[[str], Daemon]


def done(batch: int) -> Callable[[wire.ToDaemon], bool]:
    return lambda message: isinstance(message, wire.Done) and message.batch == batch


def is_cut(message: wire.ToDaemon) -> bool:
    return isinstance(message, wire.Cut)


@pytest.fixture
def start(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a worker; its batches wait for PATIENCE in all, which no test waits for but to see it."""
    monkeypatch.setattr(module, "Windows", partial(Windows, PATIENCE))
    write(model_dir / "mine.py", STREAMS)
    write(model_dir / "lanes.py", LANES)
    with ExitStack() as ends:
        codes: list[int] = []

        def run(handler: str) -> Daemon:
            nonlocal codes
            (model_dir / "model-config.yaml").write_text("pipeline: true" if handler == "lanes.py" else "")
            load = load_of(model_dir, handler)
            load.manifest = {"model": {"configFile": "model-config.yaml"}}
            ours, codes = ends.enter_context(on_thread(load))
            daemon = Daemon(ours)
            daemon.hear(lambda message: isinstance(message, wire.Loaded))
            return daemon

        yield run
    assert codes == [0]


@pytest.mark.parametrize("handler", ["mine.py", "mine.py:threaded", "lanes.py"])
def test_a_row_whose_client_does_not_read_gets_a_window_and_is_cut(start: Start, handler: str) -> None:
    daemon = start(handler)

    daemon.tell(GO)
    said = daemon.hear(done(7))

    assert [each for each in said if is_cut(each)] == [wire.Cut(7, [0])]
    assert WINDOW <= daemon.streamed() < WINDOW + PIECE
    last = said[-1]
    assert isinstance(last, wire.Done) and last.answers[0].error
    daemon.said.clear()
    daemon.tell(GO)
    said = daemon.hear(done(7), reads=(0,))
    assert not any(map(is_cut, said)) and daemon.streamed() == COUNT * PIECE, "whose client reads gets all"
    assert WINDOW >= 2 * GRANT, "the daemon tells before a client that reads has used its window up"


def test_neighbours_of_a_row_that_is_cut_get_all_and_their_piece_before_the_batch_waits(start: Start) -> None:
    daemon = start("mine.py")

    daemon.tell(wire.Predict(7, [row(b"stream"), row(b"stream")]))
    daemon.hear(is_cut, reads=(1,))
    assert daemon.streamed(1) >= daemon.streamed(0) + PIECE
    last = daemon.hear(done(7), reads=(1,))[-1]

    assert [each for each in daemon.said if is_cut(each)] == [wire.Cut(7, [0])]
    assert daemon.streamed(1) == COUNT * PIECE
    assert isinstance(last, wire.Done)
    assert last.answers[0].error and last.answers[1].body == b"end"


def test_who_is_told_that_nobody_waits_drops_the_rest_at_once(start: Start) -> None:
    daemon = start("mine.py")

    daemon.tell(GO)
    daemon.hear(lambda message: daemon.streamed() >= WINDOW)
    daemon.tell(wire.Credit(7, 0, 0))
    said = daemon.hear(done(7))

    assert not any(map(is_cut, said))
    assert daemon.streamed() < WINDOW + PIECE
    goes_on = [each for each in said if each == wire.Chunk(7, [])]
    assert len(goes_on) >= COUNT - WINDOW // PIECE - 2, "it is heard to go on"
    daemon.tell(GO)
    daemon.hear(lambda message: daemon.streamed() >= 2 * WINDOW)
    # Now the fixture closes the connection while a batch waits, and sees the worker end.


@pytest.mark.parametrize("handler", ["mine.py", "mine.py:threaded"])
def test_what_was_sent_ahead_while_a_batch_waits_is_run_after_it(start: Start, handler: str) -> None:
    daemon = start(handler)

    daemon.tell(GO)
    daemon.hear(lambda message: daemon.streamed() >= WINDOW)
    daemon.tell(wire.Threads(1), NEXT, wire.BatchSize(3), wire.Predict(9, [row(b"third")]))
    said = daemon.hear(done(9))

    assert [each.batch for each in said if isinstance(each, wire.Done)] == [7, 8, 9]


def test_lanes_run_the_next_batch_while_one_waits(start: Start) -> None:
    daemon = start("lanes.py")

    daemon.tell(GO, NEXT, wire.Predict(9, [row(b"third")]))
    said = daemon.hear(done(9))

    assert [each.batch for each in said if isinstance(each, wire.Done)] == [7, 8, 9]
    assert said.index(wire.Started(8)) < said.index(wire.Cut(7, [0]))


def test_two_lanes_that_stream_get_their_own_credit(start: Start) -> None:
    daemon = start("lanes.py")

    daemon.tell(GO, wire.Predict(8, [row(b"stream")]))
    said = daemon.hear(done(8), reads=(0,))  # of batch 7

    assert daemon.streamed() == COUNT * PIECE
    assert [each for each in said if is_cut(each)] == [wire.Cut(8, [0])]

    # The fixture closes the connection, and sees the worker end.


def test_a_wait_is_not_the_time_of_a_batch(start: Start) -> None:
    daemon = start("mine.py")

    began = time.monotonic()
    daemon.tell(GO)
    last = daemon.hear(done(7))[-1]

    assert isinstance(last, wire.Done)
    assert last.seconds + PATIENCE < time.monotonic() - began
