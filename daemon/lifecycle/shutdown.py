"""The end of a daemon: by signals, by the end of its parent (parent.py), or because another one has taken its place.

Stop, in this order: accept no request and no connection → waiting and running work finishes within the grace time →
workers leave, leftovers are killed → logs are written → the socket and the locks go. A second
signal to stop ends the grace time: unfinished requests are answered 503, and workers are killed.

Replaced (upgrade/), in this order: the other one accepts connections → this one does not → each
connection's next request is its last; when the upgrade's grace is over, idle ones are closed, requests that
are not complete are refused, and clients that do not take their answers are left → waiting and running work finishes,
however long that takes → as above, but the socket and the locks stay. A
signal, or the end of the other one, makes an ordinary stop of the rest.
"""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import Awaitable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from tsctl.daemon.http.listener import Listener
from tsctl.daemon.lifecycle.sockets import SupervisedListener
from tsctl.daemon.lifecycle.upgrade.old import Upgrade
from tsctl.daemon.lifecycle.upgrade.shim import daemon_of, lives
from tsctl.daemon.lifecycle.upgrade.states import Drain, Step, drain, stops_successor
from tsctl.daemon.models.registrar import Registrar

_COUNT_EVERY = 1.0  # seconds between two reports of what a replaced daemon counts
_LOOK_EVERY = 0.05  # seconds between two checks of the connections of a replaced daemon
_LAST_ANSWERS = 50  # checks, for clients that are reading them

_log = logging.getLogger("tsctl.daemon.server")


class Forms(Protocol):
    """Forms that are being read (api/inference/turns.py)."""

    async def finish(self) -> None: ...

    def refuse(self) -> None: ...


async def stop_models(registrar: Registrar, grace: float, hurry: Coroutine[Any, Any, Any]) -> None:
    """Finish waiting and running requests within `grace` seconds, then end the workers; at once when `hurry` ends."""
    stopping, hurried = asyncio.ensure_future(registrar.stop(grace)), asyncio.ensure_future(hurry)
    await asyncio.wait((stopping, hurried), return_when=asyncio.FIRST_COMPLETED)
    hurried.cancel()
    if not stopping.done():
        stopping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await stopping
        await registrar.stop_now()
    else:
        stopping.result()


class Shutdown:
    """Detects when this daemon must end, and waits for the requests in flight.

    Args:
        grace: seconds that running requests have at a stop.
        supervised: as in Launch.

    Attributes:
        wanted: set by the first signal to stop.
        successor: the pid of the daemon that has taken our place; None if none has.
    """

    def __init__(self, grace: float, pid_file: Path, *, supervised: bool) -> None:
        self.wanted = asyncio.Event()
        self.successor: int | None = None
        self._grace = grace
        self._pid_file = pid_file
        self._supervised = supervised
        self._hurry = asyncio.Event()
        self._signals = 0

    def watch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)

    def parent_gone(self) -> None:
        """Stop as by a signal, which is not one: a daemon that takes over sees the end of the parent itself."""
        if not self.wanted.is_set():
            _log.info("the process that started this daemon is gone")
        self.wanted.set()

    async def due(self, upgrade: Upgrade) -> None:
        """Wait until this daemon has to stop accepting; by then, a handover has succeeded or failed."""
        await first(self.wanted.wait(), upgrade.given.wait())
        if self.wanted.is_set():
            await upgrade.settle()
        if upgrade.given.is_set() and upgrade.successor is not None:
            self.successor = upgrade.successor.pid
            if self.wanted.is_set():
                self._pass_on(Step.HANDING)

    def close(self, registrar: Registrar, servers: Sequence[SupervisedListener]) -> None:
        """Accept no connection. A client that cannot connect any more finds no model ready on the others either."""
        if self.successor is None:
            registrar.refuse()
        for server in servers:
            server.close()

    async def wind_down(self, upgrade: Upgrade, listeners: Sequence[Listener]) -> None:
        """Answer the remaining clients of a daemon that has been replaced."""
        assert upgrade.successor is not None
        began = time.monotonic()
        outlived = asyncio.ensure_future(upgrade.successor.outlive())
        for listener in listeners:
            listener.wind_down(upgrade.grace)
        counted = began
        while not (self.wanted.is_set() or (outlived.done() and self._alone())):
            now = drain(any(listener.busy for listener in listeners), began, upgrade.grace, time.monotonic())
            if now is Drain.OVER:
                break
            for listener in listeners:
                listener.let_go(over=now is Drain.CLOSE_IDLE)
            await asyncio.sleep(_LOOK_EVERY)
            if time.monotonic() >= counted + _COUNT_EVERY:
                await upgrade.report_counts()
                counted = time.monotonic()
        outlived.cancel()
        await asyncio.gather(outlived, return_exceptions=True)
        upgrade.finish()

    async def finish_forms(self, forms: Forms) -> None:
        """Let the forms being read become requests of their models, which then wait or run."""
        reading, hurry = asyncio.ensure_future(forms.finish()), asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait((reading, hurry), timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
        forms.refuse()
        for each in (reading, hurry):
            each.cancel()

    async def stop_models(self, registrar: Registrar) -> None:
        """Finish waiting and running requests, then end the workers."""
        await stop_models(registrar, self._grace, self._hurry.wait())

    async def let_answers_out(self, listeners: Sequence[Listener]) -> None:
        """Wait a moment for the last answers to leave, for clients that read them."""
        for _ in range(_LAST_ANSWERS):
            if self._hurry.is_set() or not any(listener.connections for listener in listeners):
                return
            await asyncio.sleep(0.02)

    def _alone(self) -> bool:
        """Return whether the daemon that has taken our place has ended, without a successor."""
        return self.successor is None or not lives(daemon_of(str(self._pid_file), self.successor))

    def _signalled(self) -> None:
        self._signals += 1  # counted, as `wanted` may be set by the end of the parent
        if self._signals > 1:
            self._hurry.set()
        self.wanted.set()
        self._pass_on(Step.DRAINING)

    def _pass_on(self, step: Step) -> None:
        """Forward a signal received in this step, if it is meant for the daemon that has taken our place."""
        if self.successor is not None and stops_successor(step, supervised=self._supervised):
            with contextlib.suppress(ProcessLookupError):
                os.kill(daemon_of(str(self._pid_file), self.successor), signal.SIGTERM)


async def first(*these: Awaitable[Any]) -> None:
    """Wait until one of these is done; the others are cancelled."""
    tasks = [asyncio.ensure_future(each) for each in these]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
