"""Large forms: read a slice at a time, one slice in each turn of the event loop, whoever waits.

Between two slices everybody else is served. Several forms are read in turns, so that a small one does not wait for
a large one that came before. Until it is read, a form is a request that waits: its client may leave, its time may run
out, and a daemon that stops waits for it.
"""

import asyncio
import time
from collections.abc import Callable

from daemon.api.forms import Form
from daemon.api.predict import budget_of
from daemon.errors import DaemonError, Stopping, WaitedTooLong, duration
from daemon.http.exchange import Exchange
from daemon.job import Budget, Param

MOST_BYTES = 256 * 1024**2  # of all forms that are being read, as `queue_bytes` for those that wait for a worker


class TooManyForms(DaemonError):
    """So many forms are being read that this one has to come again.

    Args:
        limit: bytes that all of them may have together.
    """

    status = 503
    kind = "ServiceUnavailableException"
    retry_after = 1

    def __init__(self, limit: int, size: int) -> None:
        super().__init__(
            f"Too many forms are being read: they may have {limit} bytes together, and this one has {size}."
            " Try again later."
        )


class Turns:
    """Reads forms in turns.

    Args:
        now: the time on the daemon's clock, for deadlines.
        most_bytes: of all bodies that are being read together; one alone may have more.

    Attributes:
        bytes: of the bodies that are being read.
        reading: how many those are.
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

    async def read(self, form: Form, exchange: Exchange, most: float, then: Callable[[list[Param]], None]) -> None:
        """Read a form to its end, then hand its parameters on; not if the client leaves meanwhile.

        Args:
            most: seconds that the model allows for the request, 0.0 for any.

        Raises:
            BadRequest: it is no form.
            WaitedTooLong: the request's time is over.
            TooManyForms: there is no room for its body.
            Stopping: the daemon is being stopped.
        """
        budget = budget_of(exchange.request, most)
        size = len(exchange.request.body)
        if self.reading and self.bytes + size > self._most_bytes:
            raise TooManyForms(self._most_bytes, size)
        self.bytes += size
        self.reading += 1
        self._idle.clear()
        exchange.on_leave = _nobody_waits
        try:
            read = await self._read(form, exchange, budget)
        finally:
            exchange.on_leave = None
            self.bytes -= size
            self.reading -= 1
            if not self.reading:
                self._idle.set()
        if read:
            then(list(form.params.values()))

    async def _read(self, form: Form, exchange: Exchange, budget: Budget | None) -> bool:
        """Read to the end; return whether it was reached before the client left."""
        while not exchange.done:
            async with self._turn:
                await asyncio.sleep(0)  # with the turn taken: one slice of all forms between two looks at the sockets
                if exchange.done:
                    return False
                if self._refused:
                    raise Stopping("The daemon is being stopped: this request's form was not read to its end.")
                if budget is not None and self._now() >= budget.since + budget.seconds:
                    spent = f"{duration(self._now() - budget.since)} have gone while its form was read"
                    raise WaitedTooLong(budget.seconds, budget.source, spent)
                if form.advance():
                    await asyncio.sleep(0)  # what a worker is sent may be another copy of the last slice's parts
                    return not exchange.done
        return False

    async def finish(self) -> None:
        """Wait until no form is being read."""
        await self._idle.wait()

    def refuse(self) -> None:
        """Refuse what is being read, and whatever comes: the daemon is being stopped."""
        self._refused = True


def _nobody_waits(gone: bool) -> bool:  # noqa: ARG001 - what no worker has is not run for a client that has left
    return False
