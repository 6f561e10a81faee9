"""The daemon's notes about itself: events, counters, answered requests, the ends of its servers, stalls, lost lines."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tsctl.daemon import paths
from tsctl.daemon.api.access_log import AccessLog, AnsweredRequests
from tsctl.daemon.config.config import Config
from tsctl.daemon.core import logs
from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.events.events import Events, Journal
from tsctl.daemon.events.recurring import Recurring
from tsctl.daemon.extension import Service
from tsctl.daemon.lifecycle.start_log import shorten
from tsctl.daemon.lifecycle.supervision import Supervision
from tsctl.daemon.metrics.metrics import Metrics, RecentTimer

_log = logging.getLogger("tsctl.daemon.server")

LOOP_LOOK_EVERY = 0.5  # seconds: two calls a second cost nothing that can be measured
LOOP_LATE = 0.5  # seconds, from which on it is reported
PRINTED_LOOK_EVERY = 10.0  # seconds


class LoopWatch:
    """Reports stalls of the loop that a clock runs on: a timer that is late, as is everything else then.

    Args:
        stalled: called after each, with its length in seconds.
    """

    def __init__(self, clock: Clock, stalled: Callable[[float], None]) -> None:
        self._clock = clock
        self._stalled = stalled
        self._due = 0.0
        self._ticker = Ticker(clock, LOOP_LOOK_EVERY, self._look)

    def begin(self) -> None:
        self._due = self._clock.now() + LOOP_LOOK_EVERY
        self._ticker.begin()

    def close(self) -> None:
        self._ticker.close()

    def _look(self) -> None:
        now = self._clock.now()
        late, self._due = now - self._due, now + LOOP_LOOK_EVERY
        if late >= LOOP_LATE:
            self._stalled(late)


class PrintedLog:
    """Keeps `start.log` short, the file behind a descriptor (lifecycle/start_log.py)."""

    def __init__(self, clock: Clock, descriptor: int = 2) -> None:
        self._descriptor = descriptor
        self._ticker = Ticker(clock, PRINTED_LOOK_EVERY, self._look)

    def begin(self) -> None:
        """Look now, and every `PRINTED_LOOK_EVERY` seconds."""
        self._ticker.begin()
        self._look()

    def close(self) -> None:
        """Look no more."""
        self._ticker.close()

    def _look(self) -> None:
        with contextlib.suppress(OSError):  # such as a full disk
            shorten(self._descriptor)


class Observation(Service):
    """The events and the metrics of one daemon, and what fills them.

    Args:
        soon: makes a call on the loop: the caller may be another thread, or in the midst of logging.
        lines: a line for each answered request; None for none.
        printed: the file that has the daemon's output, to be kept short; None for none.
    """

    def __init__(
        self,
        events: Events,
        clock: Clock,
        soon: Callable[[Callable[[], None]], None],
        lines: AccessLog | None = None,
        printed: PrintedLog | None = None,
    ) -> None:
        self.events = events
        self.metrics = Metrics()
        self.metrics.events = events.counts
        self.selection: Any = None  # of the metrics that are shown, where a service chooses
        self.recurring = Recurring(events, clock)
        self.supervision = Supervision(self.recurring, clock, self.metrics)
        self.requests = AnsweredRequests(self.metrics, self.recurring, lines)
        self.soon = soon
        self._recent = RecentTimer(self.metrics, clock)
        self._watch = LoopWatch(clock, self._note_stall)
        self._lines, self._printed = lines, printed

    def notes_on(self, config: Config) -> Sequence[str]:
        """Return a note if `metrics_config` selects metrics, and no service that is installed chooses among them."""
        file = config.metrics_file
        if file is None or not file.ts_metrics or self.selection is not None:
            return ()
        return (f"note: `ts_metrics` of {config.metrics_config} has no effect: this daemon does not choose metrics",)

    def watch(self) -> None:
        """Begin before all services: a daemon that is to take over from another may load its models for long."""
        note = self.recurring.note
        logs.report_losses(lambda text: self.soon(partial(note, "log-lost", text, reason=text)))
        self._watch.begin()
        self._recent.begin()
        if self._printed is not None:
            self._printed.begin()

    def close(self) -> None:
        """End: the events last, before the last line of the log."""
        if self._printed is not None:
            self._printed.close()
        if self._lines is not None:
            self._lines.close()
        self._recent.close()
        self._watch.close()
        self.recurring.close()
        logs.report_losses(lambda text: None)
        self.events.close()
        _log.info("stopped")

    def _note_stall(self, late: float) -> None:
        self.metrics.stalled(late)
        self.recurring.note("loop-stalled", f"the event loop did not turn for {late:.1f} s")


def observation_of(config: Config, clock: Clock, *, foreground: bool) -> Observation:
    """Return that of a daemon, which runs on the loop of this thread."""
    loop = asyncio.get_running_loop()
    lines, as_json = paths.access_log(config.state_dir), config.log_format == "json"

    def soon(call: Callable[[], None]) -> None:
        loop.call_soon_threadsafe(call)

    return Observation(
        Events(Journal(paths.events_file(config.state_dir))),
        clock,
        soon,
        AccessLog(lines, clock, foreground=foreground, as_json=as_json) if config.access_log else None,
        None if foreground else PrintedLog(clock),
    )
