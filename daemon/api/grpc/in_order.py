"""Answers to requests that come one by one in a stream: begun as they come, and given in the requests' order."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

MOST = 64  # requests of one stream that are being answered; further ones are read later


class _End:
    """The end of a queue, perhaps with the error that it ended by."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


async def in_order(requests: AsyncIterator[Any], answers: Callable[[Any], AsyncGenerator[Any]]) -> AsyncGenerator[Any]:
    """Yield the answers to each request, all of one request before those of the next.

    An error of the requests, or of an answer, is raised in its place.

    Args:
        answers: yields the answers to one request.
    """
    waiting: asyncio.Queue[asyncio.Queue[Any] | _End] = asyncio.Queue()
    room = asyncio.Semaphore(MOST)
    tasks: set[asyncio.Task[None]] = set()

    async def one(request: Any, found: asyncio.Queue[Any]) -> None:
        await _pass_on(answers(request), found)

    async def read() -> None:
        try:
            async for request in requests:
                await room.acquire()
                found: asyncio.Queue[Any] = asyncio.Queue()
                waiting.put_nowait(found)
                task = asyncio.create_task(one(request, found))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            waiting.put_nowait(_End())
        except Exception as error:  # noqa: BLE001 - raised for the caller
            waiting.put_nowait(_End(error))

    reading = asyncio.create_task(read())
    try:
        while not isinstance(found := await waiting.get(), _End):
            while not isinstance(answer := await found.get(), _End):
                yield answer
            if answer.error is not None:
                raise answer.error
            room.release()
        if found.error is not None:
            raise found.error
    finally:
        left = [reading, *tasks]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _pass_on(answers: AsyncGenerator[Any], found: asyncio.Queue[Any]) -> None:
    try:
        async for answer in answers:
            found.put_nowait(answer)
        found.put_nowait(_End())
    except Exception as error:  # noqa: BLE001 - raised for the caller
        found.put_nowait(_End(error))
    finally:
        await answers.aclose()
