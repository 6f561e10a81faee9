"""Answers to requests that come one by one in a stream: begun as they come, and given in the requests' order.

A client that does not read slows the answers down: of each request at most `AHEAD` bytes are held here, and one answer.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from typing import Any, TypeVar

from tsctl.daemon.core.steps import Steps

T = TypeVar("T")


class StepTurns:
    """Does one step of all calls between two polls of the sockets."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def finish(self, steps: Steps[T], between: Callable[[], Awaitable[None]] | None = None) -> T:
        """Do all steps, the first at once, and return the result; raise as they do.

        Args:
            between: called after each turn, in which others were served.
        """
        while True:
            try:
                next(steps)
            except StopIteration as ended:
                result: T = ended.value
                return result
            async with self._turn:
                await asyncio.sleep(0)  # with the turn held
            if between is not None:
                await between()


MOST = 64  # requests of one stream that are being answered; further ones are read later
AHEAD = 256 * 1024  # bytes of one request's answers that wait for those of earlier requests, or for the client


class _Answers:
    """The answers to one request that have come, and have not been taken.

    Args:
        size: returns the bytes of an answer.
    """

    def __init__(self, size: Callable[[Any], int]) -> None:
        self._size = size
        self._queue: asyncio.Queue[Any] = asyncio.Queue()
        self._held = 0
        self._room = asyncio.Event()
        self._room.set()

    async def put(self, answer: Any) -> None:
        """Add an answer, then wait while more than `AHEAD` bytes are held."""
        self._held += self._size(answer)
        self._queue.put_nowait(answer)
        if self._held > AHEAD:
            self._room.clear()
            await self._room.wait()

    def end(self, error: BaseException | None = None) -> None:
        self._queue.put_nowait(_End(error))

    async def take_answer(self) -> Any:
        answer = await self._queue.get()
        if not isinstance(answer, _End):
            self._held -= self._size(answer)
            if self._held <= AHEAD:
                self._room.set()
        return answer


class _End:
    """The end of a queue, perhaps with the error that it ended by."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


async def in_order(
    requests: AsyncIterable[Any], answers: Callable[[Any], AsyncGenerator[Any]], size: Callable[[Any], int]
) -> AsyncGenerator[Any]:
    """Yield the answers to each request, all of one request before those of the next.

    An error of the requests, or of an answer, is raised in its place.

    Args:
        answers: yields the answers to one request.
        size: returns the bytes of an answer.
    """
    waiting: asyncio.Queue[_Answers | _End] = asyncio.Queue()
    room = asyncio.Semaphore(MOST)
    tasks: set[asyncio.Task[None]] = set()

    async def read() -> None:
        try:
            async for request in requests:
                await room.acquire()
                found = _Answers(size)
                waiting.put_nowait(found)
                task = asyncio.create_task(_pass_on(answers(request), found))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
            waiting.put_nowait(_End())
        except Exception as error:  # noqa: BLE001 - raised for the caller
            waiting.put_nowait(_End(error))

    reading = asyncio.create_task(read())
    try:
        while not isinstance(found := await waiting.get(), _End):
            while not isinstance(answer := await found.take_answer(), _End):
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


async def _pass_on(answers: AsyncGenerator[Any], found: _Answers) -> None:
    try:
        async for answer in answers:
            await found.put(answer)
        found.end()
    except Exception as error:  # noqa: BLE001 - raised for the caller
        found.end(error)
    finally:
        await answers.aclose()
