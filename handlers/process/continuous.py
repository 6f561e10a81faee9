"""How a worker runs rows with continuous batching: a call of the handler, then whatever has come meanwhile, and so on.

    new rows ──▶ active ──a call says that it was the last──▶ Done
                   │
                   └──Cancel, or its client has gone or reads nothing──▶ Done, and the handler is told in its next call

No row waits for the client of another (row_window.py).
"""

from collections.abc import Sequence

from handlers import wire
from handlers.process.connection import NOTHING, DaemonConnection
from handlers.process.row_window import LEFT, RowWindow
from handlers.process.threads import set_threads
from handlers.runtime.steps import ActiveRow, Stepped, SteppedRuntime


class Active(ActiveRow):
    """An active row, and the window of its client.

    Attributes:
        left: nobody waits for the rest.
    """

    __slots__ = ("left", "window")

    def __init__(self, message: wire.Predict, window: RowWindow) -> None:
        super().__init__(message)
        self.window = window
        self.left = False


class Continuous:
    """The conversation of a worker whose model runs rows continuously."""

    def __init__(self, runtime: SteppedRuntime, connection: DaemonConnection) -> None:
        self._runtime = runtime
        self._connection = connection
        self._active: dict[int, Active] = {}  # by the number of their batch
        self._cancelled: list[str] = []  # ids that the handler has not been told yet

    def converse(self) -> None:
        """Run rows until the daemon closes its end; raises as `DaemonConnection` does."""
        connection = self._connection
        while True:
            message = connection.poll() if self._active else connection.receive()
            while message is not NOTHING:
                if message is None:
                    return
                self._hear(message)
                message = connection.poll()
            self._drop_left()
            if self._active:
                self._step()

    def _hear(self, message: wire.ToWorker) -> None:
        if isinstance(message, wire.Predict):
            self._active[message.batch] = Active(message, RowWindow(self._connection, message.batch))
        elif isinstance(message, wire.Cancel):
            if message.batch in self._active:
                self._active[message.batch].left = True
        elif isinstance(message, wire.Threads):
            set_threads(message.count)
        elif isinstance(message, wire.BatchSize):
            self._runtime.set_batch_size(message.most)

    def _drop_left(self) -> None:
        for number, row in list(self._active.items()):
            if row.left or row.window.shut:
                if not row.fresh:
                    self._cancelled.append(row.row.id)
                self._connection.send(self._end(number, LEFT))

    def _step(self) -> None:
        numbers, rows = list(self._active), list(self._active.values())
        cancelled, self._cancelled = self._cancelled, []

        def send(place: int, piece: wire.Answer) -> None:
            if rows[place].window.passes(piece):
                self._connection.send(wire.Chunk(numbers[place], [(0, piece)]))

        self._send(numbers, rows, self._runtime.step(rows, cancelled, send))

    def _send(self, numbers: Sequence[int], rows: Sequence[Active], stepped: Sequence[Stepped]) -> None:
        """Send what one call gave, in one frame."""
        pieces = [
            (number, answer)
            for number, row, (answer, ends) in zip(numbers, rows, stepped, strict=True)
            if not ends and row.window.passes(answer)
        ]
        tracebacks = {place: each.traceback for each in self._runtime.failures for place in each.rows}
        ends = [
            self._end(number, answer, tracebacks.get(place, ""))
            for place, (number, (answer, ends)) in enumerate(zip(numbers, stepped, strict=True))
            if ends
        ]
        if ends:
            ends[0].measured = self._runtime.measured()
        self._connection.send(wire.Round(pieces, ends))

    def _end(self, number: int, answer: wire.Answer, traceback: str = "") -> wire.Done:
        """Take a row out, and return the message of its end."""
        row = self._active.pop(number)
        failures = [wire.HandlerFailure([0], traceback)] if traceback else []
        kept = self._runtime.views.end(row.message)
        return wire.Done(number, [row.window.close(answer)], row.seconds(), [], None, failures, kept)
