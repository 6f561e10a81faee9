"""The header `x-request-deadline-ms`: a request's deadline, in milliseconds from the end of its headers."""

from collections.abc import Callable

from tsctl.daemon.core.clock import Clock, Timer
from tsctl.daemon.core.errors import BadRequest, DaemonError, ReceivedTooSlowly

HEADER = "x-request-deadline-ms"
PRIORITY_HEADER = "x-request-priority"
_LONGEST = 10**12  # milliseconds; more counts as this: timers do not take any number


def read_budget(text: str) -> float:
    """Parse the header `x-request-deadline-ms`, and return seconds.

    Raises:
        BadRequest: `text` is not a whole number of milliseconds from 1.
    """
    digits = text.lstrip("0")
    if not (text.isascii() and text.isdigit() and digits):
        raise BadRequest(f"Invalid header {HEADER}: `{text}`; expected a whole number of milliseconds, at least 1.")
    return min(int(digits[:13]), _LONGEST) / 1000


class BodyDeadline:
    """Enforces a request's deadline while its body arrives; the dispatcher enforces the deadline afterwards.

    Args:
        text: the header's value. An invalid value bounds nothing here: the route rejects the request.
        began: when the headers were complete, in seconds on this clock.
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
        """Call `refuse` at the deadline; at once, if the deadline has passed."""
        self._refuse = refuse
        self._look()

    def stop(self) -> None:
        """Cancel the deadline: the body is complete, or no longer awaited."""
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
