"""The code of a simulated worker that runs rows on their own, as handlers/process/continuous.py and concurrent.py.

    continuous    a step for all rows: a piece or the end of each, in one frame or in many; then the next step
    async         each row on its own: its pieces, and its end

The process may die between any two frames. A row may fall silent: it ends when it is cancelled, or never. The windows
of its clients are production's (handlers/process/row_window.py).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from tests.lab.simulation.script import HEARD, PADDING, SIGKILL, Script, answer_to
from tsctl.daemon.models.settings import ModelSettings
from tsctl.handlers import wire
from tsctl.handlers.process.row_window import LEFT, RowConnection, RowWindow

if TYPE_CHECKING:
    from tests.lab.simulation.process import Process
    from tests.lab.simulation.world import World

STEPS = 3  # in which a row without faults passes the time of a batch
LEAST = 0.0005  # seconds of a step
SLOWEST = 0.05  # seconds of a step in which nothing is said
POURED = 27  # pieces of a row that streams more than a client may leave unread
POURING = 0.02  # seconds from one of them to the next: a client that reads has said so by then
UNKNOWN = 1_000_000  # added to a number, it is no row's


@dataclass(eq=False, slots=True)
class ActiveRow:
    """A row that has begun."""

    message: wire.Predict
    window: RowWindow
    began: float  # when it was received
    pieces: int = 0  # of its answer
    told: int = 0  # of these, said
    fresh: bool = True
    large: bool = False  # its pieces are
    left: bool = False  # the daemon has cancelled it
    silent: bool = False  # nothing more is said of it …
    stuck: bool = False  # … not even its end

    @property
    def number(self) -> int:
        return self.message.batch

    @property
    def name(self) -> str:
        return self.message.rows[0].id

    @property
    def poison(self) -> bool:
        return self.name.endswith("!")

    def piece(self) -> wire.Answer:
        """Return the next piece; each says whose it is, and which."""
        return wire.Answer(200, f"{self.name} {self.told} ".encode() + (PADDING if self.large else b""))


def places(made: ModelSettings, batch_size: int) -> int:
    """Return how many rows a worker may have at the same time.

    Args:
        made: the settings with which its version was made.
    """
    return int(made.queue_jobs) if made.asynchronous else batch_size * (2 if made.sequences else 1)


class RowScript(Script):
    """The work of one process that runs rows on their own.

    Attributes:
        rows: those that have begun, by number.
    """

    def __init__(self, process: "Process", world: "World") -> None:
        super().__init__(process, world)
        self.rows: dict[int, ActiveRow] = {}
        self._windows: dict[int, RowWindow] = {}  # of rows with pieces
        self._steps = process.spec.mode == "continuous"
        self._stepping = False
        self._frozen = False

    def __repr__(self) -> str:
        return f" with {' '.join(row.name for row in self.rows.values())}" if self.rows else ""

    @property
    def busy(self) -> bool:
        return bool(self.rows)

    @property
    def stopped(self) -> bool:
        return self._frozen or self._process.stopped

    def hear(self, message: wire.ToWorker | None) -> None:
        if self._frozen:
            return
        if isinstance(message, wire.Predict):
            self._begin(message)
        elif isinstance(message, wire.Cancel):
            self._cancel(message.batch)
        elif isinstance(message, wire.Credit):
            self._grant(message)
        else:
            super().hear(message)

    # The connection, as windows use it.

    def send(self, message: wire.ToDaemon) -> None:
        self.say(message)

    def open(self, number: int, window: RowWindow) -> None:
        self._windows[number] = window

    def close(self, number: int) -> None:
        del self._windows[number]

    # What the daemon says.

    def _begin(self, message: wire.Predict) -> None:
        world = self._world
        most = places(self._process.made, self.batch_size)
        if len(self.rows) >= most or len(message.rows) != 1 or message.batch in self.rows:
            world.broken("a worker has no more rows than places", worker=self._process, places=most, rows=self.rows)
            return
        self.reader.sent(message)
        row = self.rows[message.batch] = ActiveRow(
            message, RowWindow(cast(RowConnection, self), message.batch), world.loop.now()
        )
        row.large = self._process.whether(world.plan.pours) and not any(each.large for each in self.rows.values())
        row.pieces = POURED if row.large else self._chance.choice((0, 0, 1, 2, 5))
        world.began(self._process, message)
        self.reader.read(message)
        if not self._steps:
            self._run_row(row)
        elif not self._stepping:
            self._stepping = True
            self._later(0.0, self._step)

    def _cancel(self, number: int) -> None:
        row = self.rows.get(number)
        if row is None:
            return  # its end is on the way
        entry = self._world.entries.get(row.name)
        if row.left or (entry is not None and not entry.left and entry.reply is None):
            self._world.broken("a row is cancelled once, when nobody waits for it", row=row.name, entry=entry)
        self._world.note("%r: is to drop %s", self._process, row.name)
        row.left = True
        if not self._steps and not row.stuck:
            self._later(self._chance.choice((0.0, 0.0, 0.001, 0.05)), self._end_row, row, LEFT)

    def _grant(self, credit: wire.Credit) -> None:
        row = self.rows.get(credit.batch)
        if row is not None and credit.batch in self._windows:
            self.check_credit(row.name, credit.count)
            self._windows[credit.batch].grant(0, credit.count)

    def _go_on(self) -> None:
        if self.stopped:
            return
        if self.rows:
            self._world.broken("a worker with rows is not asked to leave", worker=self._process, rows=list(self.rows))
        if self._asked_to_leave and not self._process.has("deaf"):
            self._later(LEAST, self._process.end, 0)

    # Continuous: a step for all.

    def _step(self) -> None:
        """Drop the rows that have left, and call the handler for the others."""
        for row in list(self.rows.values()):
            if row.left or row.window.shut:
                self._end_row(row, LEFT)
        rows = list(self.rows.values())
        self._stepping = bool(rows)
        if not rows or self.stopped:
            return
        seconds = self._seconds(rows) / STEPS
        poison = any(row.poison and row.fresh for row in rows)
        for row in rows:
            row.fresh = False
            self.reader.read(row.message)
        lasts = self._meet_fault(self._chance.choice(rows), seconds, poison)
        if not math.isinf(lasts):
            self._later(lasts, self._stepped, rows)

    def _stepped(self, rows: Sequence[ActiveRow]) -> None:
        """Say what a call gave: a piece of each row, or its end."""
        if self.stopped:
            return
        together, chunks = wire.Round([], [], [], []), list[wire.ToDaemon]()
        for row in rows:
            if row.silent:
                continue
            if row.told == row.pieces:
                together.ends.append(self._ended(row, self._answer_to(row)))
            elif chunk := self._next_piece(row):
                chunks.append(chunk)
                piece = chunk.pieces[0][1]
                if row.told > 1:
                    together.rows.append(row.number)
                    together.more.append(piece.body)
                else:
                    together.pieces.append((row.number, piece))
        self._say([together] if self._chance.random() < 0.6 else [*chunks, *together.ends])
        self._step()

    # Async: each row on its own.

    def _run_row(self, row: ActiveRow) -> None:
        seconds = self._seconds([row])
        row.fresh = False
        lasts = self._meet_fault(row, seconds, row.poison)
        if not math.isinf(lasts):
            self._later(lasts / (row.pieces + 1), self._go_on_with, row, lasts / (row.pieces + 1))

    def _go_on_with(self, row: ActiveRow, pause: float) -> None:
        """Say the next piece of a row, or its end."""
        if self.stopped or row.silent or self.rows.get(row.number) is not row or row.left:
            return
        self.reader.read(row.message)
        if row.told == row.pieces:
            self._end_row(row, self._answer_to(row))
        elif chunk := self._next_piece(row):
            self._say([chunk])
            self._later(pause, self._go_on_with, row, pause)
        else:
            self._end_row(row, LEFT)

    # Both.

    def _seconds(self, rows: Sequence[ActiveRow]) -> float:
        """Return how long a handler takes for these rows, to the end of those without pieces."""
        a, c = self._world.plan.service
        least = POURING * (1 if self._steps else POURED) if any(row.large for row in rows) else LEAST
        if all(row.silent for row in rows):
            least = SLOWEST
        factor = STEPS if self._steps else 1
        return max((a + c * len(rows)) * self._chance.uniform(0.9, 1.1), least * factor)

    def _meet_fault(self, row: ActiveRow, seconds: float, poison: bool) -> float:
        """Return how long the step, or the row, takes in the end, inf for never."""
        process, part = self._process, self._chance.random()
        if poison or process.has("dies"):
            self._later(seconds * part, process.die, self._chance.choice((SIGKILL, 1, -11)))
        elif process.has("hangs"):
            return self._hang(row, seconds)
        elif process.has("leaves"):
            self._later(seconds * part, self._leave_connection)
            return math.inf
        elif process.has("confused"):
            self._later(seconds * part, self._confuse_row, row)
        elif process.has("late"):
            timeout = process.spec.response_timeout
            just = self._chance.random() < 0.5  # around the timeout itself
            seconds = timeout + self._chance.uniform(-0.001, 0.001) if just else seconds + timeout * part * 2
        elif process.has("streams") and row.pieces > row.told:
            self._later(seconds * part, self._say_piece, row)
        return seconds

    def _hang(self, row: ActiveRow, seconds: float) -> float:
        """Let a row fall silent, or the process."""
        kind = self._chance.choice(("row", "row", "stuck", "process"))
        if self._steps:
            kind = "row" if kind == "row" else "process"
        self._world.note("%r: hangs (%s)%r", self._process, row.name if kind != "process" else "all", self)
        if kind == "process":
            self._frozen = True
            return math.inf
        row.silent, row.stuck = True, kind == "stuck"
        return seconds if self._steps else math.inf

    def _say_piece(self, row: ActiveRow) -> None:
        """Say a piece while the handler runs."""
        if self.stopped or self.rows.get(row.number) is not row or row.silent or row.told == row.pieces:
            return
        if chunk := self._next_piece(row):
            self._say([chunk])

    def _confuse_row(self, row: ActiveRow) -> None:
        """Violate the protocol; the daemon must expect anything after that."""
        if self.stopped or self.rows.get(row.number) is not row:
            return
        number, answer, piece = row.number, answer_to(row.message.rows[0]), row.piece()
        end = wire.Done(number, [answer], 0.01)
        odd: list[wire.ToDaemon] = [
            wire.Done(number, [], 0.01),
            wire.Done(number, [answer, answer], 0.01),
            wire.Done(number + UNKNOWN, [answer], 0.01),
            wire.Round([], [end, end]),
            wire.Round([(number + UNKNOWN, piece)], [wire.Done(number + UNKNOWN, [answer], 0.01)]),
            wire.Chunk(number, [(1, piece)]),
            wire.Chunk(number, [(-1, piece)]),
            wire.Cut(number, [1]),
            wire.Started(number),
            wire.Loaded(0.1, False),
            wire.Hello(1),
        ]
        said = self._chance.choice(odd)
        self._world.note("%r: is confused, and says %r", self._process, said)
        if isinstance(said, wire.Round) and not said.pieces:
            self._world.finished(row.name)
            self._world.wrote(self._process, row.message, end.seconds)
            row.silent = True
            del self.rows[number]
            end.kept = self.reader.answered_and_kept(row.message, self._chance)  # the first of the two ends counts
        self.say(said)

    def _say(self, messages: list[wire.ToDaemon]) -> None:
        """Say some messages; the process may die between any two."""
        if not messages:
            return
        if self._process.has("confused"):  # a thread of the handler goes on for a while
            ended = [each.batch for each in messages if isinstance(each, wire.Done)]
            messages = [*messages, *(wire.Chunk(number, [(0, LEFT)]) for number in ended)]
        if self._process.has("dies", share=0.3):
            for message in messages[: self._chance.randrange(len(messages) + 1)]:
                self.say(message)
            self._process.die(self._chance.choice((SIGKILL, 1, -11)))
        elif self._chance.random() < 0.5:
            self._process.say(*messages)
        else:
            for message in messages:
                self.say(message)

    def say(self, message: wire.ToDaemon) -> None:
        if not self._frozen:
            super().say(message)

    def _next_piece(self, row: ActiveRow) -> wire.Chunk | None:
        """Return the next piece of a row, which says whose it is, and which; None where its client does not read."""
        piece = row.piece()
        if not row.window.passes(len(piece.body)):
            return None
        row.told += 1
        self._world.said(row.name)
        return wire.Chunk(row.number, [(0, piece)])

    def _answer_to(self, row: ActiveRow) -> wire.Answer:
        answer = answer_to(row.message.rows[0], failed=self._process.has("raises"))
        return self._may_end_sequence(row.message.rows[0], answer)

    def _end_row(self, row: ActiveRow, answer: wire.Answer) -> None:
        if not self.stopped and not self._frozen and self.rows.get(row.number) is row:
            self._say([self._ended(row, answer)])

    def _ended(self, row: ActiveRow, answer: wire.Answer) -> wire.Done:
        """Take a row out, and return the message of its end."""
        del self.rows[row.number]
        kept = self.reader.answered_and_kept(row.message, self._chance)
        self._check_wanted(row)
        seconds = self._world.loop.now() - row.began
        self._world.wrote(self._process, row.message, seconds)
        self._world.finished(row.name)
        return wire.Done(row.number, [row.window.close(answer)], seconds, kept=kept)

    def _check_wanted(self, row: ActiveRow) -> None:
        """Check that the daemon has cancelled a row that nobody waits for; that takes a moment."""
        entry, line = self._world.entries.get(row.name), self._process.line
        if row.left or entry is None or entry.over is None or line is None or line.closed:
            return
        ago = self._world.loop.now() - max(entry.over, self._world.loop.stalled)
        if ago > HEARD:
            self._world.broken("a row that nobody waits for is cancelled", worker=self._process, entry=entry, ago=ago)
