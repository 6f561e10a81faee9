"""The daemon's notes about itself: events, counters, the ends of its servers, stalls of its loop, lost lines."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tsctl.daemon.core import logs
from tsctl.daemon.core.clock import Clock
from tsctl.daemon.events.events import Events, Journal
from tsctl.daemon.events.loop_watch import LoopWatch
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.extension import Service
from tsctl.daemon.lifecycle.supervision import Supervision
from tsctl.daemon.metrics.metrics import Metrics, RecentTimer

_log = logging.getLogger("tsctl.daemon.server")


class BackgroundService(Service):
    """A service that is nothing but calls at its begin and its end, as a ticker is."""

    def __init__(
        self,
        begin: Callable[[], None] = lambda: None,
        settle: Callable[[], None] = lambda: None,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self._begin, self._settle, self._close = begin, settle, close

    def begin(self) -> None:
        self._begin()

    async def settle(self, *, replaced: bool) -> None:  # noqa: ARG002 - it ends the same way
        self._settle()

    def close(self) -> None:
        self._close()


class Observation:
    """The events and the metrics of one daemon, and what fills them.

    Args:
        file: of events.
        loop: that the daemon runs on.
    """

    def __init__(self, file: Path, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self.events = Events(Journal(file))
        self.metrics = Metrics()
        self.metrics.events = self.events.counts
        self.recurring = Recurring(self.events, clock)
        self.supervision = Supervision(self.recurring, clock, self.metrics)
        self._clock = clock
        self._loop = loop

    def soon(self, call: Callable[[], None]) -> None:
        """Make a call on the loop: the caller may be another thread, or in the midst of logging."""
        self._loop.call_soon_threadsafe(call)

    def services(self) -> list[Service]:
        """Return what is to be begun and closed; the events are closed last, before the last line of the log."""
        recent, watch = RecentTimer(self.metrics, self._clock), LoopWatch(self._clock, self._note_stall)
        return [
            BackgroundService(close=partial(_log.info, "stopped")),
            BackgroundService(close=self.events.close),
            BackgroundService(self._report_losses, close=lambda: logs.report_losses(lambda text: None)),
            BackgroundService(close=self.recurring.close),
            BackgroundService(watch.begin, close=watch.close),
            BackgroundService(recent.begin, close=recent.close),
        ]

    def _report_losses(self) -> None:
        note = self.recurring.note
        logs.report_losses(lambda text: self.soon(partial(note, "log-lost", text, reason=text)))

    def _note_stall(self, late: float) -> None:
        self.metrics.stalled(late)
        self.recurring.note("loop-stalled", f"the event loop did not turn for {late:.1f} s")
