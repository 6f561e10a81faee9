"""Coroutines of a handler, on one event loop that lives as long as the worker: its clients keep their connections.

Only handlers with an `async def` import this module, and asyncio with it (20 ms).
"""

import asyncio
import contextvars
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

from tsctl.handlers.typed.pieces import END, SendPiece


class EventLoop:
    """The event loop of a worker, begun with its first coroutine."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._context = contextvars.copy_context()  # what one coroutine sets, the next ones find

    def close(self) -> None:
        """Cancel the remaining tasks and close the loop."""
        self._runner.close()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run one coroutine to its end."""
        # Not by the runner, which asks twice for the handler of SIGINT: `signal.getsignal` makes a text of it, in which
        # is the result of the task before. A tensor's text takes milliseconds, and waits for the GPU.
        loop = self._runner.get_loop()
        return loop.run_until_complete(loop.create_task(coroutine, context=self._context))

    def gather(self, calls: Sequence[Awaitable[Any]]) -> list[Any]:
        """Run the rows at the same time; return each row's value, or the exception in its place."""
        values: list[Any] = self.run(_all(calls))
        return values

    def stream(self, streams: Sequence[AsyncIterator[Any]], send: SendPiece) -> list[Any]:
        """Run asynchronous generators at the same time, and send each piece at once; return as `stream_rows` does."""
        return self.gather([_send_each(row, each, send) for row, each in enumerate(streams)])

    def each(self, stream: AsyncIterator[Any], take: Callable[[Any], None]) -> None:
        """Run one asynchronous generator to its end."""
        self.run(_take_each(stream, take))


def run_on_current_loop(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run one coroutine to its end on the event loop that was set for this thread."""
    return asyncio.get_event_loop().run_until_complete(coroutine)


async def _all(calls: Sequence[Awaitable[Any]]) -> list[Any]:
    return list(await asyncio.gather(*calls, return_exceptions=True))


async def _send_each(row: int, stream: AsyncIterator[Any], send: SendPiece) -> bytes:
    async for piece in stream:
        send(row, piece)
    return END


async def _take_each(stream: AsyncIterator[Any], take: Callable[[Any], None]) -> None:
    async for piece in stream:
        take(piece)
