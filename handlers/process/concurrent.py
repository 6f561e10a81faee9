"""How a worker runs rows with `asyncCommunication`: each is a task on one event loop, and ends when it is ready.

    Predict ──▶ task ──returns, raises──▶ Done
                 │
                 └──Cancel, or its client has gone or reads nothing──▶ cancelled ──▶ Done

The socket is read when it is readable, between the steps of the tasks; no row waits for the client of another
(row_window.py). A task that computes for long keeps the others waiting, as in any program with an event loop.
"""

import asyncio

from tsctl.handlers import wire
from tsctl.handlers.process.connection import DaemonConnection
from tsctl.handlers.process.row_window import LEFT, RowWindow
from tsctl.handlers.process.threads import set_threads
from tsctl.handlers.runtime.failures import tell_failure
from tsctl.handlers.runtime.tasks import Answered, TaskRuntime


class Concurrent:
    """The conversation of a worker whose handler is a coroutine."""

    def __init__(self, runtime: TaskRuntime, connection: DaemonConnection) -> None:
        self._runtime = runtime
        self._connection = connection
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by the number of their batch
        self._loop = runtime.loop
        self._over: asyncio.Future[None] = self._loop.create_future()

    def converse(self) -> None:
        """Run rows until the daemon closes its end; raises as `DaemonConnection` does."""
        conversation = self._loop.create_task(self._converse())
        while True:
            try:
                self._loop.run_until_complete(conversation)
                return
            except (SystemExit, KeyboardInterrupt) as error:  # a task or callback of the handler's own ends the loop
                if conversation.done():
                    raise
                tell_failure(error, "")

    async def _converse(self) -> None:
        number = self._connection.number
        self._loop.add_reader(number, self._readable)
        self._loop.call_soon(self._readable)  # what has been read already
        try:
            await self._over
        finally:
            self._loop.remove_reader(number)
            tasks = list(self._tasks.values())
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _readable(self) -> None:
        try:
            for message in () if self._over.done() else self._connection.arrived():
                if message is None:
                    self._over.set_result(None)
                else:
                    self._hear(message)
        except BaseException as error:  # noqa: BLE001 - `converse` raises it
            self._fail(error)

    def _hear(self, message: wire.ToWorker) -> None:
        if isinstance(message, wire.Predict):
            self._tasks[message.batch] = self._loop.create_task(self._run(message))
        elif isinstance(message, wire.Cancel):
            task = self._tasks.get(message.batch)
            if task is not None:
                task.cancel()
        else:
            self._runtime.obey(message, set_threads)

    async def _run(self, message: wire.Predict) -> None:
        number, [row] = message.batch, message.rows
        window = RowWindow(self._connection, number)
        task = self._tasks[number]

        def send(piece: wire.Answer) -> None:
            if window.passes(len(piece.body)):
                self._connection.send(wire.Chunk(number, [(0, piece)]))
            elif window.shut:
                task.cancel()

        try:
            answered = await self._runtime.answer(row, send)
        except asyncio.CancelledError:
            answered = Answered(LEFT, 0.0)
        except BaseException as error:  # noqa: BLE001 - not the handler's: the connection's
            self._fail(error)
            return
        del self._tasks[number]
        try:
            failures = [wire.HandlerFailure([0], answered.traceback)] if answered.traceback else []
            kept = self._runtime.kept(message)
            answer, measured = window.close(answered.answer), self._runtime.measured()
            self._connection.send(wire.Done(number, [answer], answered.seconds, measured, None, failures, kept))
        except BaseException as error:  # noqa: BLE001 - `converse` raises it
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._over.done():
            self._over.set_exception(error)
