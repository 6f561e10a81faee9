"""Reading of large forms: one slice of all forms per turn of the event loop.

Other requests are served between two slices. Several forms are read in turns (round robin), so that a small form does
not wait for an earlier large one. An unread form is a waiting request: its client may disconnect, its time may expire,
and a stopping daemon waits for the form.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from tsctl.daemon.api.inference.predict import read_time
from tsctl.daemon.core.errors import LimitReached, Stopping, WaitedTooLong
from tsctl.daemon.core.job import Param, TimeBudget
from tsctl.daemon.core.steps import Steps
from tsctl.daemon.core.timing import duration
from tsctl.daemon.http.exchange import Exchange

MOST_BYTES = 256 * 1024**2  # of all forms being read; `queue_bytes` is the same for requests that wait for a worker

T = TypeVar("T")


class Readable(Protocol):
    """A body that is read in slices."""

    def advance(self) -> bool:
        """Read one slice; return whether it was the last. Raise BadRequest for a malformed body."""


class ReadableForm(Readable, Protocol):
    """A form.

    Attributes:
        params: what was read; complete when `advance` has returned True.
    """

    @property
    def params(self) -> list[Param]: ...


class Reading(Generic[T]):
    """A request that is no form, and is read in turns as one is.

    Attributes:
        result: what was read; there when `advance` has returned True.
    """

    result: T

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps

    def advance(self) -> bool:
        """Read one slice; return whether it was the last. Raise BadRequest for a malformed body."""
        try:
            next(self._steps)
        except StopIteration as ended:
            self.result = ended.value
            return True
        return False


class TooManyForms(LimitReached):
    """Rejected: too many bytes of forms are being read at once.

    Args:
        limit: maximum bytes of all forms being read.
        size: bytes of this form.
    """

    def __init__(self, limit: int, size: int) -> None:
        super().__init__(
            f"Too many large bodies are being read: the limit is {limit} bytes in total, and this one has {size}."
            " Try again later."
        )


class Turns:
    """A reader of several forms in turns.

    Args:
        now: returns the time on the daemon's clock in seconds, for deadlines.
        most_bytes: maximum total of the bodies being read; a single body may have more.

    Attributes:
        bytes: total of the bodies being read.
        reading: number of bodies being read.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic, most_bytes: int = MOST_BYTES) -> None:
        self.bytes = 0
        self.reading = 0
        self._now = now
        self._most_bytes = most_bytes
        self._turn = asyncio.Lock()
        self._refused = False
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"<Turns {self.reading} forms, {self.bytes} bytes>"

    async def read(
        self, form: ReadableForm, exchange: Exchange, most: float, then: Callable[[list[Param]], None]
    ) -> None:
        """Read a form as `read_whole`, then call `then` with its parameters, unless the client disconnects."""
        if await self.read_whole(form, exchange, most):
            then(form.params)

    async def read_whole(self, form: Readable, exchange: Exchange, most: float) -> bool:
        """Read a form to its end; return whether it was reached before the client disconnected.

        Args:
            most: the model's limit for the request in seconds, 0.0 for none.

        Raises:
            BadRequest: the form is malformed or exceeds a limit, or the client's deadline is invalid.
            WaitedTooLong: the request has expired.
            TooManyForms: the bodies being read leave no room for this one.
            Stopping: the daemon is being stopped.
        """
        budget = read_time(exchange.request, most)
        size = len(exchange.request.body)
        if self.reading and self.bytes + size > self._most_bytes:
            raise TooManyForms(self._most_bytes, size)
        self.bytes += size
        self.reading += 1
        self._idle.clear()
        exchange.on_leave = _nobody_waits
        try:
            return await self._read(form, exchange, budget)
        finally:
            exchange.on_leave = None
            self.bytes -= size
            self.reading -= 1
            if not self.reading:
                self._idle.set()

    async def _read(self, form: Readable, exchange: Exchange, budget: TimeBudget | None) -> bool:
        while not exchange.done:
            async with self._turn:
                await asyncio.sleep(0)  # with the turn held: one slice of all forms between two polls of the sockets
                if exchange.done:
                    return False
                if self._refused:
                    raise Stopping("The daemon is being stopped: this request's body was not read completely.")
                if budget is not None and self._now() >= budget.since + budget.seconds:
                    spent = f"{duration(self._now() - budget.since)} have gone while its body was read"
                    raise WaitedTooLong(budget.seconds, budget.source, spent)
                if form.advance():
                    await asyncio.sleep(0)  # dispatching may copy the last slice's parts once more
                    return not exchange.done
        return False

    async def finish(self) -> None:
        """Wait until no form is being read."""
        await self._idle.wait()

    def refuse(self) -> None:
        """Reject the forms being read and all later ones: the daemon is being stopped."""
        self._refused = True


def _nobody_waits(gone: bool) -> bool:  # noqa: ARG001 - a request that no worker has is dropped when its client disconnects
    return False
