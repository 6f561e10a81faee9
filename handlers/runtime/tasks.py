"""`asyncCommunication`: each row is a call of the handler's coroutine, beside the others, with a context of its own."""

import asyncio
import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tsctl.handlers import wire
from tsctl.handlers.requests.out_of_memory import is_out_of_memory, make_room
from tsctl.handlers.requests.rows import headers_of, in_memory, items_of
from tsctl.handlers.runtime.failures import bad_request, failed
from tsctl.handlers.runtime.runtime import Runtime, is_exception
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.request_processor import RequestProcessor
from tsctl.handlers.tensor_heads import InferHead


class Answered(NamedTuple):
    """The end of a row: its answer, its seconds, and the traceback if the handler raised."""

    answer: wire.Answer
    seconds: float
    traceback: str = ""


class TaskRuntime(Runtime):
    """A model whose handler is a coroutine; its event loop is current while the model loads, as TorchServe's is.

    Attributes:
        loop: runs the rows.
    """

    loop: asyncio.AbstractEventLoop

    @classmethod
    def load(cls, load: wire.Load) -> "TaskRuntime":
        """Import the handler and initialize it; errors of the handler's code propagate.

        Raises:
            HandlerError: the handler's `handle` is no coroutine function.
        """
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            made = cls._checked(super().load(load))
        except BaseException:
            asyncio.set_event_loop(None)
            loop.close()
            raise
        made.loop = loop
        return made

    @staticmethod
    def _checked(made: Runtime) -> "TaskRuntime":
        assert isinstance(made, TaskRuntime)
        if made.declared is not None or not inspect.iscoroutinefunction(made._entry.handle):
            raise HandlerError(
                "model-config.yaml: `asyncCommunication: true` needs `async def handle(self, data, context)`; write the"
                " handler so, or remove the key"
            )
        return made

    def close(self) -> None:
        """End what the handler's entry point runs, and the loop."""
        super().close()
        asyncio.set_event_loop(None)
        self.loop.close()

    async def answer(self, row: wire.Row, send: Callable[[wire.Answer], None]) -> Answered:
        """Run one row.

        Args:
            send: takes a piece that the handler sends before it returns.
        """
        began = time.perf_counter()
        try:
            return await self._answer(row, send)
        except BaseException as error:
            if issubclass(type(error), asyncio.CancelledError) and _is_cancelled():
                raise
            answered = Answered(failed(row, error), time.perf_counter() - began, self._tell(error))
            crowded = is_out_of_memory(error)
        if crowded:  # outside the `except` block, so that the memory of the exception's frames is freed
            make_room()
        return answered

    async def _answer(self, row: wire.Row, send: Callable[[wire.Answer], None]) -> Answered:
        one = self.beside()
        context = one._context
        data, unreadable = one._read_rows([row])
        if unreadable:
            return Answered(bad_request(row, unreadable[0]), 0.0)
        processor = RequestProcessor(headers_of(row))
        context.resume({0: row.id}, [processor])
        if isinstance(row.infer, InferHead):
            context.request_parameters[0] = row.infer.parameters
        begun = False

        def send_piece(items: Sequence[Any], places: object = None) -> None:  # noqa: ARG001
            nonlocal begun
            begun = True
            send(one._encode(processor, row, items[0]))

        context.send_pieces = send_piece
        began = time.perf_counter()
        [item] = in_memory(items_of(await self._entry.handle(data, context), 1))
        seconds = time.perf_counter() - began
        self._tally.add("gauge", "HandlerTime", "ms", self._labels, seconds * 1000)
        traceback = self._tell(item) if is_exception(item) else ""
        answer = one._encode(processor, row, item)
        if row.infer is not None and not begun:
            from tsctl.handlers.tensors.rows import as_asked

            (answer,) = as_asked([row], [answer])
        return Answered(answer, seconds, traceback)


def _is_cancelled() -> bool:
    """Return whether the daemon has cancelled this row; else the handler's own cancellation is its failure."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
