"""Supervision: servers must never end, and one that does is begun again.

    UP ──ended──▶ DOWN, for a pause ──begun again──▶ UP
                   ▲  └──cannot begin──┐
                   └───────────────────┘ a longer pause

An end is an event, a line of `tsctl status`, a metric, and the end of readiness until the server is back.

Code that repeats on a timer (core/clock.py's `Ticker`, and others) sets its next call before its work. So an exception
ends no ticker: the event loop hands the exception to `Supervision.unhandled`, and that of a task that nobody waits for.
Each is an event, and counted.
"""

import asyncio
import contextlib
import logging
import os
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tsctl.daemon.core.clock import Clock
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.metrics.metrics import Metrics

FIRST_PAUSE = 0.1  # seconds
LONGEST_PAUSE = 30.0
STEADY = 60.0  # seconds that a server must have run for its next pause to be the first one again

_log = logging.getLogger("tsctl.daemon.server")


class SupervisedServer(Protocol):
    """A server that must never end.

    Attributes:
        name: for people and metrics: its protocol, and its addresses.
        longest_pause: seconds; a server that its clients can end has a short one, because an attack lasts as long.
    """

    @property
    def name(self) -> str: ...

    @property
    def longest_pause(self) -> float: ...

    async def begin(self) -> None:
        """Start serving; also called after an end."""

    async def ended(self) -> str:
        """Wait until the server has ended although nothing has closed it; return or raise the reason."""


class OwnServer(SupervisedServer, Protocol):
    """A server at addresses of its own, beside HTTP's."""

    @property
    def urls(self) -> Sequence[str]:
        """The addresses, with the ports that the kernel chose."""

    async def close(self, grace: float) -> None:
        """Accept nothing more, and wait for what is running, at most `grace` seconds."""


@dataclass(slots=True)
class ServerRecord:
    """The state of one server.

    Attributes:
        ends: how often it has ended.
        why: of the latest end; empty without one.
        at: seconds since the epoch, of the latest end.
        pause: seconds, the latest.
    """

    name: str
    up: bool = True
    ends: int = 0
    why: str = ""
    at: float = 0.0
    pause: float = 0.0

    @property
    def document(self) -> dict[str, Any]:
        return {"name": self.name, "up": self.up, "ends": self.ends, "why": self.why, "at": self.at or None}


def pause_after(last: float, lasted: float, longest: float = LONGEST_PAUSE) -> float:
    """Return the seconds to wait before a server is begun again.

    Args:
        last: the pause before, in seconds; 0.0 for none.
        lasted: seconds that the server has run since; 0.0 if the begin failed.
        longest: the bound of the pauses, which double.
    """
    if not last or lasted >= max(STEADY, last):
        return min(FIRST_PAUSE, longest)
    return min(2 * last, longest)


class Supervision:
    """Begins servers, and begins them again when they end.

    Args:
        recurring: told of each end, and of each new begin.
        metrics: shows them, too.

    Attributes:
        known: the servers that were begun, in order.
    """

    def __init__(self, recurring: Recurring, clock: Clock, metrics: Metrics) -> None:
        self.known: list[ServerRecord] = []
        self._metrics = metrics
        self._recurring = recurring
        self._clock = clock
        self._watching: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<Supervision {self.known}>"

    @property
    def serving(self) -> bool:
        """Whether no server is down."""
        return all(each.up for each in self.known)

    @property
    def document(self) -> dict[str, Any]:
        """The fields of `tsctl status`."""
        return {"servers": [each.document for each in self.known], "internalErrors": self._metrics.internal_errors}

    async def begin(self, servers: Iterable[SupervisedServer]) -> None:
        """Begin servers in order, and watch them from then on.

        Raises:
            Exception: the first begin of one has failed; those before it are watched.
        """
        for server in servers:
            await server.begin()
            known = ServerRecord(server.name)
            self.known.append(known)
            self._show(known)
            task = asyncio.get_running_loop().create_task(self._watch(server, known))
            self._watching.add(task)
            task.add_done_callback(self._watching.discard)

    def close(self) -> None:
        """Watch nothing any more: the daemon closes its servers itself, and begins none again."""
        for task in self._watching:
            task.cancel()

    def unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:  # noqa: ARG002 - as asyncio calls it
        """Count, log and tell an exception that has reached the event loop: asyncio's exception handler."""
        error, message = context.get("exception"), context.get("message", "")
        if isinstance(error, Exception) and _is_foreign(context.get("future")):
            _log.warning("%s of a library: %s", message, _text_of(error))  # what it has ended is watched above
            return
        self._metrics.internal_errors += 1
        _log.error("%s", message, exc_info=error)
        where = _where(error)
        text = f"{message if error is None else _text_of(error)}{where and f' in {where}'}"
        with contextlib.suppress(Exception):
            self._recurring.note("internal-error", text, reason=f"{type(error).__name__} {where}")

    async def _watch(self, server: SupervisedServer, known: ServerRecord) -> None:
        while True:
            began = self._clock.now()
            why = await _end_of(server)
            known.up = False
            known.ends += 1
            known.why, known.at = why, time.time()
            self._show(known)
            known.pause = pause_after(known.pause, self._clock.now() - began, server.longest_pause)
            self._tell("server-ended", known, f"has ended: {why}; it is started again in {known.pause:g} s")
            await self._sleep(known.pause)
            while (failure := await _begin(server)) is not None:
                known.pause = pause_after(known.pause, 0.0, server.longest_pause)
                self._tell("server-ended", known, f"cannot start again: {failure}; next try in {known.pause:g} s")
                await self._sleep(known.pause)
            known.up = True
            self._show(known)
            self._tell("server-restarted", known, "serves again")

    def _show(self, known: ServerRecord) -> None:
        self._metrics.servers[known.name] = known.up, known.ends

    def _tell(self, kind: str, known: ServerRecord, text: str) -> None:
        with contextlib.suppress(Exception):  # a reader of events must not end the watch
            self._recurring.note(kind, f"`{known.name}` {text}", reason=known.name)

    async def _sleep(self, seconds: float) -> None:
        over = asyncio.Event()
        self._clock.later(seconds, over.set)
        await over.wait()


async def _end_of(server: SupervisedServer) -> str:
    try:
        return await server.ended()
    except Exception as error:  # noqa: BLE001 - whatever has ended it
        return _text_of(error)


async def _begin(server: SupervisedServer) -> str | None:
    """Begin a server again; return why that failed, None if it did not."""
    try:
        await server.begin()
    except Exception as error:  # noqa: BLE001 - tried again, whatever it was
        return _text_of(error)
    return None


def _text_of(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - its `__str__` raises
        return type(error).__name__


def _where(error: BaseException | None) -> str:
    """Return the last place in the daemon's own code that an exception has passed; empty for none."""
    frames = [] if error is None else traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{os.sep}daemon{os.sep}" in f"{os.sep}{frame.filename}"]
    if not ours:
        return ""
    return f"daemon/{ours[-1].filename.rpartition(f'daemon{os.sep}')[2]}, `{ours[-1].name}`"


def _is_foreign(future: Any) -> bool:
    """Return whether this is a task of gRPC, whose coroutines are Cython's: it leaves its own exceptions unread."""
    return isinstance(future, asyncio.Task) and type(future.get_coro()).__module__.startswith("_cython")
