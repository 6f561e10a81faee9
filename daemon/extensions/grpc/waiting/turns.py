"""Work of calls in steps: others are served between two of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tsctl.daemon.api.tensors.steps import Steps

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
