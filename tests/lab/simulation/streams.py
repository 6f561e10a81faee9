"""Streams of a run: a handler that sends more to its batch's clients than they read, and clients that may not read.

The worker's windows are those of handlers/credit.py, on the virtual loop; the daemon's side is production's. The
checks: credit is granted for bytes a client has read, nothing comes after a cut, and a wait is not the worker's time.
"""

import random
from typing import TYPE_CHECKING

from tsctl.daemon.core.job import Piece, Reply
from tsctl.handlers import wire
from tsctl.handlers.credit import LATE_WINDOW, WINDOW, Pieces, Windows, cost_of

if TYPE_CHECKING:
    from tests.lab.simulation.clients import Clients
    from tests.lab.simulation.ledger import Entry
    from tests.lab.simulation.script import Script
    from tests.lab.simulation.world import World

SIZE = WINDOW // 3  # bytes of a piece
COUNT = 6  # pieces of a row: two windows
HEARD = 0.01  # seconds after which the daemon has received a worker's message
_PADDING = bytes(SIZE)


class Reader:
    """The client of one streamed response. By seed, the client reads at once, after a while, or never.

    Attributes:
        taken: bytes of the window read so far.
        cut: the daemon has ended the response, because it is not read.
    """

    def __init__(self, world: "World", clients: "Clients", entry: "Entry") -> None:
        self.taken = 0
        self._world = world
        self._clients = clients
        self._entry = entry
        self._unread = 0
        self.cut = False
        chance = random.Random(f"reader {world.plan.seed} {entry.name}")
        self._pause: float | None = chance.choice((0.0, 0.0, 0.0, chance.uniform(0.0, 1.5), None, None))

    def take(self, piece: Reply) -> None:
        """Receive a piece of the response."""
        if not isinstance(piece, Piece):
            return
        entry = self._entry
        if entry.reply is not None or entry.left:
            self._world.broken("no piece comes after the end", entry=entry, piece=len(piece.body))
        if self.cut:
            self._world.broken("nothing comes after a cut", entry=self._entry, piece=len(piece.body))
        if piece.unread:
            self.cut = True
            stalled = self._world.loop.stalled > 0.0 and entry.served.by_rows  # a row does not wait for the daemon
            if self._pause == 0.0 and not stalled:
                self._world.broken("only who does not read is cut", entry=self._entry)
            self._world.note("%s is cut", self._entry.name)
            self._world.loop.outside(0.0, self._clients.leave, self._entry)  # the daemon closes the connection
            return
        assert piece.flow is not None
        piece.flow.wanted = True
        if entry.served.by_rows and piece.body.split(b" ", 2)[:2] != [entry.name.encode(), b"%d" % entry.told]:
            self._world.broken("pieces come to whoever asked, in their order", entry=entry, piece=piece.body[:40])
        entry.told += 1
        self._unread += cost_of(wire.Answer(piece.status, piece.body))
        if self._unread > LATE_WINDOW + len(piece.body) + 1000:
            self._world.broken("a client is sent no more than its window", entry=self._entry, unread=self._unread)
        if self._pause == 0.0:
            self._read(piece)
        elif self._pause is not None:
            self._world.loop.outside(self._pause, self._read, piece)

    @property
    def slow(self) -> bool:
        """Whether the client does not read at once."""
        return self._pause != 0.0

    def _read(self, piece: Piece) -> None:
        """Read all received pieces."""
        assert piece.flow is not None
        self.taken += self._unread
        self._unread = 0
        if self._entry.left and self._pause != 0.0:
            piece.flow.refuse()
        else:
            piece.flow.drained()


class Pour:
    """A handler that streams to all rows of its batch, and waits for those whose windows are used up.

    Args:
        pause: seconds from one piece to the next.
    """

    def __init__(self, script: "Script", world: "World", batch: wire.Predict, pause: float) -> None:
        self.waited = 0.0
        self._script = script
        self._world = world
        self._batch = batch
        self._pause = pause
        self._windows = Windows()
        self._granted: dict[int, int] = {}
        self._count = 0
        self._waiting: Pieces = []
        self._began = 0.0
        self._sent = 0.0  # when the last pieces were sent
        self._waits = 0

    def waits(self, batch: int) -> bool:
        """Return whether this batch waits for its clients, having been on time, and the daemon must already know."""
        on_time = self._began - self._sent <= self._pause + HEARD  # the machine may have stalled
        heard = self._world.loop.now() - self._began > HEARD
        return bool(self._waiting) and batch == self._batch.batch and on_time and heard

    def pour(self) -> None:
        """Send a piece to each row, or finish."""
        if self._script.running is not self._batch or self._script.stopped:
            return
        if self._count == COUNT:
            self._script.finish(self._batch, COUNT * self._pause, self._windows.cut)
            return
        self._count += 1
        names = [row.id.encode() for row in self._batch.rows]
        self._send([(row, wire.Answer(200, name + b" " + _PADDING)) for row, name in enumerate(names)])

    def grant(self, credit: wire.Credit) -> None:
        """Apply the daemon's credit."""
        if credit.batch != self._batch.batch:
            return
        name = self._batch.rows[credit.row].id
        reader = self._world.readers.get(name)
        granted = self._granted[credit.row] = self._granted.get(credit.row, 0) + credit.count
        if reader is not None and granted > reader.taken:
            self._world.broken("credit is given for what a client has read", name=name, granted=granted)
        self._windows.grant(credit.row, credit.count)
        if self._waiting and self._windows.may_go_on(self._waiting):
            self._end_wait(self._world.loop.now() - self._began)

    def _send(self, pieces: Pieces) -> None:
        now, self._waiting = self._windows.split(pieces)
        if now or not self._waiting:
            self._script.say(wire.Chunk(self._batch.batch, now))
            self._sent = self._world.loop.now()
        if not self._waiting:
            self._world.loop.outside(self._pause, self.pour)
            return
        self._windows.begin_wait()
        self._began = self._world.loop.now()
        self._waits += 1
        self._world.loop.outside(max(0.0, self._windows.patience), self._give_up, self._waits)

    def _give_up(self, number: int) -> None:
        if self._waiting and number == self._waits and not self._script.stopped:
            self._end_wait(max(self._windows.patience, 0.0))

    def _end_wait(self, seconds: float) -> None:
        waiting, self._waiting = self._waiting, []
        cut = self._windows.end_wait(seconds, waiting)
        if cut:
            self._script.say(wire.Cut(self._batch.batch, cut))
        self._send(waiting)
