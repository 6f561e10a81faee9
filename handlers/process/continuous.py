"""How a worker runs rows with continuous batching: a call of the handler, then whatever has come meanwhile, and so on.

    new rows ──▶ active ──a call says that it was the last──▶ Done
                   │
                   └──Cancel, or its client has gone or reads nothing──▶ Done, and the handler is told in its next call

No row waits for the client of another (row_window.py).
"""

from collections.abc import Sequence
from typing import cast

from tsctl.handlers import wire
from tsctl.handlers.compiling import mypyc_attr
from tsctl.handlers.credit import OVERHEAD
from tsctl.handlers.process.connection import DaemonConnection
from tsctl.handlers.process.row_window import LEFT, RowConnection, RowWindow
from tsctl.handlers.process.threads import set_threads
from tsctl.handlers.runtime.steps import ActiveRow, ActiveRows, Stepped, SteppedRuntime


class Active(ActiveRow):
    """An active row, and the window of its client."""

    __slots__ = ("window",)

    def __init__(self, message: wire.Predict, window: RowWindow) -> None:
        super().__init__(message)
        self.window = window


class RowPieces:
    """Sends pieces that the handler gives for these rows while it runs."""

    def __init__(self, rows: Sequence[Active], connection: RowConnection) -> None:
        self._rows = rows
        self._connection = connection

    def __call__(self, pieces: list[tuple[int, wire.Answer]]) -> None:
        for place, piece in pieces:
            row = self._rows[place]
            if row.window.passes(len(piece.body)):
                self._connection.send(wire.Chunk(row.number, [(0, piece)]))


@mypyc_attr(allow_interpreted_subclasses=True)  # those of ranks
class Continuous:
    """The conversation of a worker whose model runs rows continuously."""

    def __init__(self, runtime: SteppedRuntime, connection: DaemonConnection) -> None:
        self._runtime = runtime
        self._connection = connection
        self._active: dict[int, Active] = {}  # by the number of their batch
        self._batch: ActiveRows[Active] | None = None  # of the last call; None if any row has joined or left since
        self._numbers: list[int] = []  # of its rows; and their windows
        self._windows: list[RowWindow] = []
        self._scarce = True  # some window may have no room
        self._some_left = False  # nobody waits for a row that is active
        self._cancelled: list[str] = []  # ids that the handler has not been told yet

    def converse(self) -> None:
        """Run rows until the daemon closes its end; raises as `DaemonConnection` does."""
        connection = self._connection
        while True:
            messages = connection.arrived() if self._active else [connection.receive(), *connection.arrived()]
            for message in messages:
                if message is None:
                    return
                self._hear(message)
            self._drop_left()
            if self._active:
                self._step()

    def _hear(self, message: wire.ToWorker) -> None:
        if isinstance(message, wire.Predict):
            self._active[message.batch] = Active(message, RowWindow(self._connection, message.batch, self._note_left))
            self._batch = None
        elif isinstance(message, wire.Cancel):
            if message.batch in self._active:
                self._active[message.batch].window.leave()
        else:
            self._runtime.obey(message, set_threads)

    def _note_left(self) -> None:
        self._some_left = True

    def _drop_left(self) -> None:
        if not self._some_left:
            return
        self._some_left = False
        for number in [number for number, row in self._active.items() if row.window.shut]:
            row = self._active[number]
            if not row.fresh:
                self._cancelled.append(row.row.id)
            self._connection.send(self._end(number, LEFT))

    def _step(self) -> None:
        batch = self._next_batch()
        rows = batch.active
        cancelled, self._cancelled = self._cancelled, []
        self._send(rows, self._runtime.step(batch, cancelled, RowPieces(rows, self._connection)))

    def _next_batch(self) -> ActiveRows[Active]:
        """Return the rows of the next call."""
        if self._batch is None:
            self._batch = ActiveRows(list(self._active.values()))
            self._numbers = list(self._active)
            self._windows = [row.window for row in self._batch.active]
            self._scarce = True
        return self._batch

    def _send(self, rows: Sequence[Active], stepped: Sequence[Stepped]) -> None:
        """Send what one call gave, in one frame."""
        if self._all_pass(stepped):
            self._connection.send(wire.Round([], [], self._numbers, cast(list[bytes], stepped)))
            return
        failures = self._runtime.failures
        tracebacks = {place: each.traceback for each in failures for place in each.rows} if failures else {}
        sent = wire.Round([], [], [], [])
        for place, (row, outcome) in enumerate(zip(rows, stepped, strict=True)):
            if isinstance(outcome, bytes):
                if row.window.passes(len(outcome)):
                    sent.rows.append(row.number)
                    sent.more.append(outcome)
                continue
            answer, ends = outcome
            if ends:
                sent.ends.append(self._end(row.number, answer, tracebacks.get(place, "")))
            elif row.window.passes(len(answer.body)):
                sent.pieces.append((row.number, answer))
        self._scarce = min([window.room for window in self._windows]) <= 0
        if sent.ends:
            sent.ends[0].measured = self._runtime.measured()
            sent.ends[0].too_large = self._runtime.too_large
        self._connection.send(sent)

    def _all_pass(self, stepped: Sequence[Stepped]) -> bool:
        """Return whether each row has a further piece and room for it, as nearly always; charge the pieces then."""
        if self._scarce or self._some_left or not self._runtime.further:
            return False
        for window, piece in zip(self._windows, stepped, strict=True):
            window.room = room = window.room - len(piece) - OVERHEAD
            if room <= 0:
                self._scarce = True
        return True

    def _end(self, number: int, answer: wire.Answer, traceback: str = "") -> wire.Done:
        """Take a row out, and return the message of its end."""
        row = self._active.pop(number)
        self._batch = None
        failures = [wire.HandlerFailure([0], traceback)] if traceback else []
        kept = self._runtime.kept(row.message)
        return wire.Done(number, [row.window.close(answer)], row.seconds(), [], None, failures, kept)
