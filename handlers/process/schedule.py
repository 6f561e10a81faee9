"""How a loaded model runs batches: one after the other, or overlapping (pipeline.py)."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tsctl.handlers import wire
from tsctl.handlers.compiling import mypyc_attr
from tsctl.handlers.credit import Windows
from tsctl.handlers.process.connection import DaemonConnection
from tsctl.handlers.process.threads import set_threads
from tsctl.handlers.requests.rows import failure
from tsctl.handlers.runtime.runtime import Runtime, SendPieces
from tsctl.handlers.sdk.errors import HandlerError

if TYPE_CHECKING:
    from tsctl.handlers.process.pipeline import Ran


class Pieces:
    """Takes the pieces of one batch; costs nothing while there are none.

    Attributes:
        waited: seconds the batch spent waiting for its clients.
    """

    __slots__ = ("_batch", "_closed", "_connection", "_windows", "waited")

    def __init__(self, connection: DaemonConnection, batch: int) -> None:
        self.waited = 0.0
        self._connection = connection
        self._batch = batch
        self._windows: Windows | None = None
        self._closed = False

    def __call__(self, pieces: list[tuple[int, wire.Answer]]) -> None:
        """Send (row, piece) pairs; wait for clients that have much to read already. Empty: the batch continues.

        Raises:
            Disconnected: the handler closed the connection.
            BrokenPipeError: the daemon is gone.
            ConnectionResetError: the daemon is gone.
        """
        if self._closed:
            return  # from a thread of the handler that outlives its batch
        if not pieces:
            self._connection.send(wire.Chunk(self._batch, pieces))
            return
        with self._connection.news:  # several threads of the handler may send
            if self._windows is None:
                self._windows = Windows()
                self._connection.open(self._batch, self._windows)
        windows = self._windows
        with self._connection.news:
            ready, short = windows.split(pieces)
        while True:
            if ready or not short:  # an empty Chunk says that the batch continues, even if all clients are gone
                self._connection.send(wire.Chunk(self._batch, ready))
            if not short or self._closed:
                return
            cut = self._wait(windows, short)
            if cut:
                self._connection.send(wire.Cut(self._batch, cut))
            with self._connection.news:
                ready, short = windows.split(short)

    def _wait(self, windows: Windows, short: list[tuple[int, wire.Answer]]) -> list[int]:
        """Wait for the clients of these pieces; return the newly cut rows."""
        with self._connection.news:
            windows.begin_wait()
            patience = max(0.0, windows.patience)
        began = time.monotonic()
        in_time = self._connection.wait(lambda: self._closed or windows.may_go_on(short), patience)
        seconds = time.monotonic() - began
        self.waited += seconds
        with self._connection.news:
            return windows.end_wait(seconds if in_time else max(seconds, patience), short)

    def last(self, answers: list[wire.Answer]) -> list[wire.Answer]:
        """Return the answers that complete the batch, without those of cut rows; ignore later pieces."""
        self._closed = True
        if self._windows is None:
            return answers
        self._connection.close(self._batch)
        cut = self._windows.cut
        return (
            [
                failure("The client does not wait for the rest.") if row in cut else answer
                for row, answer in enumerate(answers)
            ]
            if cut
            else answers
        )


class Conversation(Protocol):
    """A worker's conversation with the daemon about batches, or about rows that run on their own."""

    def converse(self) -> None:
        """Run what comes until the daemon closes its end, and finish what is in flight.

        Raises:
            Disconnected: the handler closed the connection.
            BrokenPipeError: the daemon is gone.
            ConnectionResetError: the daemon is gone.
        """


def alone(mode: wire.Mode, runtime: Runtime, connection: DaemonConnection, threads: int) -> Conversation:
    """Return the way to run this model in one process.

    Raises:
        HandlerError: `pipeline: true` of its `model-config.yaml` is not possible.
    """
    if mode == "continuous":
        from tsctl.handlers.process.continuous import Continuous
        from tsctl.handlers.runtime.steps import SteppedRuntime

        assert isinstance(runtime, SteppedRuntime)
        return Continuous(runtime, connection)
    if mode == "async":
        from tsctl.handlers.process.concurrent import Concurrent
        from tsctl.handlers.runtime.tasks import TaskRuntime

        assert isinstance(runtime, TaskRuntime)
        return Concurrent(runtime, connection)
    handler = runtime.handler
    wanted = runtime.config.get("pipeline")
    if wanted is None and (handler is None or runtime.own_handle or not _is_ours(handler)):
        return InTurn(runtime, connection)  # without importing modules that a handler may not need
    if handler is None:
        if wanted:
            raise HandlerError("model-config.yaml: `pipeline: true` needs a handler class, and this one is a function")
        return InTurn(runtime, connection)
    from tsctl.handlers.process.pipeline import suits

    if suits(handler, runtime.own_handle, runtime.config):
        return Overlapped(runtime, connection, threads)
    return InTurn(runtime, connection)


def _is_ours(handler: object) -> bool:
    return any(parent.__module__.startswith("tsctl.handlers.builtin.") for parent in type(handler).__mro__)


@mypyc_attr(allow_interpreted_subclasses=True)
class InTurn:
    """Runs one batch after the other, on the main thread."""

    def __init__(self, runtime: Runtime, connection: DaemonConnection) -> None:
        self._runtime = runtime
        self._connection = connection
        self._run: Callable[[Sequence[wire.Row], SendPieces], list[wire.Answer]] = runtime.run

    def converse(self) -> None:
        while (message := self._connection.receive()) is not None:
            if isinstance(message, wire.Predict):
                self.run(message)
            else:
                self.obey(message)
        self.close()

    def run(self, batch: wire.Predict) -> None:
        """Run a batch, or start it."""
        runtime, connection = self._runtime, self._connection
        pieces = Pieces(connection, batch.batch)
        began = time.perf_counter()
        answers = pieces.last(self._run(batch.rows, pieces))
        seconds = time.perf_counter() - began - pieces.waited
        measured, failures, kept = runtime.measured(), runtime.failures, runtime.kept(batch)
        isolation, too_large = runtime.isolation, runtime.too_large
        connection.send(wire.Done(batch.batch, answers, seconds, measured, isolation, failures, kept, too_large))

    def obey(self, message: wire.ToWorker) -> None:
        """Obey a message that is no batch, from the next batch on."""
        self._runtime.obey(message, set_threads)

    def close(self) -> None:
        """Finish the batches in flight: here is none."""


class Overlapped(InTurn):
    """Starts the next batch while one runs; each start is reported to the daemon."""

    def __init__(self, runtime: Runtime, connection: DaemonConnection, threads: int) -> None:
        from tsctl.handlers.process.pipeline import Pipeline

        super().__init__(runtime, connection)
        self._pipeline = Pipeline(runtime, set_threads=set_threads)
        self._pipeline.set_threads(threads)
        self._ended = 0.0  # when the last batch was done

    def run(self, batch: wire.Predict) -> None:
        began = time.perf_counter()
        self._connection.send(wire.Started(batch.batch))
        pieces = Pieces(self._connection, batch.batch)

        def done(ran: "Ran") -> None:
            last = pieces.last(ran.answers)
            now = time.perf_counter()
            # Without the overlap with the batch before: during it, this batch either waited or cost nothing.
            seconds, self._ended = max(0.0, now - max(began, self._ended) - pieces.waited), now
            measured = self._runtime.measured()
            kept = self._runtime.kept(batch)
            end = wire.Done(
                batch.batch, last, seconds, measured, ran.isolation, ran.failures, kept, ran.too_large
            )  # fmt: skip
            self._connection.send(end)

        self._pipeline.submit(batch.rows, done, pieces)

    def obey(self, message: wire.ToWorker) -> None:
        self._runtime.obey(message, self._pipeline.set_threads)

    def close(self) -> None:
        self._pipeline.close()
