"""The daemon's end of a worker that runs rows on their own, played by a test; the worker is a thread."""

import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.handlers.samples import row, write
from tests.handlers.test_worker import load_of
from tsctl.handlers import wire
from tsctl.handlers.credit import GRANT, cost_of
from tsctl.handlers.frame_reader import FrameReader
from tsctl.handlers.process.connection import DaemonConnection
from tsctl.handlers.worker import serve

PATIENCE = 20.0  # seconds


class RowDaemon:
    """Writes down what the worker says.

    Attributes:
        loaded: the worker's message that it is ready, or why it is not.
        pieces: row → its pieces.
        ends: row → its ends; more than one would be an error.
        unread: rows whose clients read nothing; the others get credit as from the daemon.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.loaded: wire.Loaded | wire.LoadFailed | None = None
        self.pieces: dict[int, list[bytes]] = defaultdict(list)
        self.ends: dict[int, list[wire.Done]] = defaultdict(list)
        self.steps: list[wire.Round] = []
        self.cut: list[int] = []
        self.unread: set[int] = set()
        self._taken: dict[int, int] = defaultdict(int)
        self._sock = sock
        self._reader = FrameReader()

    def tell(self, *messages: wire.ToWorker) -> None:
        self._sock.sendall(b"".join(map(wire.encode, messages)))

    def begin(self, **rows: bytes) -> None:
        """Send rows in one write: `r1=b"…"` is the row 1."""
        self.tell(*[wire.Predict(int(name[1:]), [row(body, request_id=name)]) for name, body in rows.items()])

    def hear(self, until: Callable[[], bool]) -> None:
        """Listen until that holds."""
        while not until():
            data = self._sock.recv(65536)
            assert data, "the worker has closed its end"
            for frame in self._reader.feed(data):
                self._said(wire.decode_for_daemon(frame))

    def hear_end(self, *numbers: int) -> list[wire.Done]:
        """Listen until these rows have ended; return their ends."""
        self.hear(lambda: all(self.ends[number] for number in numbers))
        return [self.ends[number][0] for number in numbers]

    def body(self, number: int) -> bytes:
        """Return a row's whole answer."""
        [end] = self.ends[number]
        return b"".join(self.pieces[number]) + end.answers[0].body

    def _said(self, message: wire.ToDaemon) -> None:
        match message:
            case wire.Loaded() | wire.LoadFailed():
                self.loaded = message
            case wire.Round():
                self.steps.append(message)
                for number, piece in message.pieces:
                    self._piece(number, piece)
                for number, body in zip(message.rows, message.more, strict=True):
                    assert self.pieces[number], "the first piece has a status and headers"
                    self._piece(number, wire.Answer(200, body))
                for done in message.ends:
                    self.ends[done.batch].append(done)
            case wire.Chunk():
                for _, piece in message.pieces:
                    self._piece(message.batch, piece)
            case wire.Done():
                self.ends[message.batch].append(message)
            case wire.Cut():
                self.cut.append(message.batch)

    def _piece(self, number: int, piece: wire.Answer) -> None:
        assert not self.ends[number], "a piece after the end"
        self.pieces[number].append(piece.body)
        self._taken[number] += cost_of(piece)
        if number not in self.unread and self._taken[number] >= GRANT:
            self.tell(wire.Credit(number, 0, self._taken.pop(number)))


@contextmanager
def on_thread(load: wire.Load) -> Iterator[tuple[socket.socket, list[int]]]:
    """Run a worker on a thread, with this load; it ends with the block.

    Yields:
        The daemon's end, and where its exit code will be.
    """
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    codes: list[int] = []

    def work() -> None:
        try:
            codes.append(serve(DaemonConnection(theirs)))
        except (BrokenPipeError, ConnectionResetError):
            codes.append(0)  # as `converse` leaves

    thread = threading.Thread(target=work)
    with ours, theirs:
        thread.start()
        ours.sendall(wire.encode(load))
        yield ours, codes
        ours.close()
        thread.join(PATIENCE)
    assert not thread.is_alive()


@contextmanager
def row_worker(model_dir: Path, handler: str, mode: wire.Mode, *, isolate: bool | None = None) -> Iterator[RowDaemon]:
    """Start a worker with this handler; it ends with the block."""
    write(model_dir / "mine.py", handler)
    load = load_of(model_dir)
    load.mode, load.isolate = mode, isolate
    with on_thread(load) as (ours, codes):
        daemon = RowDaemon(ours)
        daemon.hear(lambda: daemon.loaded is not None)
        yield daemon
    assert codes == [0 if isinstance(daemon.loaded, wire.Loaded) else wire.EXIT_LOAD_FAILED]
