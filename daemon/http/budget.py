"""The header `x-request-deadline-ms`: how long its client will wait for a request's answer."""

from collections.abc import Callable

from daemon.clock import Clock, Timer
from daemon.errors import BadRequest, DaemonError, ReceivedTooSlowly

HEADER = "x-request-deadline-ms"
PRIORITY_HEADER = "x-request-priority"
_LONGEST = 10**12  # milliseconds; more is no limit, and timers do not take any number


def read_budget(text: str) -> float:
    """Give seconds.

    Raises:
        BadRequest: it is not a whole number of milliseconds from 1.
    """
    digits = text.lstrip("0")
    if not (text.isascii() and text.isdigit() and digits):
        raise BadRequest(f"{HEADER} is `{text}`, and should be a whole number of milliseconds, at least 1.")
    return min(int(digits[:13]), _LONGEST) / 1000


class BodyBudget:
    """Bounds the arrival of one body by the time that its request may take; whoever runs the model bounds the rest.

    Args:
        text: the header's value. Where that is no budget nothing is bounded: the route refuses it.
        began: when the headers were complete, on this clock.
    """

    def __init__(self, clock: Clock, text: str, began: float) -> None:
        self._clock = clock
        self._timer: Timer | None = None
        try:
            self._seconds: float | None = read_budget(text)
        except BadRequest:
            self._seconds = None
        self._ends = began + (self._seconds or 0.0)

    def start(self, refuse: Callable[[DaemonError], None]) -> None:
        """Call `refuse` when the time is over; at once, if it is."""
        self._refuse = refuse
        self._look()

    def stop(self) -> None:
        """The body is complete, or not waited for."""
        self._seconds = None
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        if self._seconds is None:
            return
        now = self._clock.now()
        if now < self._ends:
            self._timer = self._clock.later(self._ends - now, self._look)
        else:
            self._refuse(ReceivedTooSlowly(self._seconds, HEADER))
