"""After a handler raised for a batch, its rows run again one by one, so that only the faulty rows fail.

Exceptions: errors that a handler raises on purpose stand, and the reruns delay other batches. Reruns therefore take at
most a tenth of a worker's time; beyond that limit a batch fails whole.

Where memory does not suffice for a batch, its halves run instead, and theirs, down to single rows: in at most about
three times the batch's own time, and seldom, as the daemon learns of it. So that limit is not theirs.
"""

from collections.abc import Sequence

from tsctl.handlers.sdk.context import RequestProcessor
from tsctl.handlers.sdk.errors import InvalidResult, PredictionException

SHARE = 0.1  # of a worker's time
SAVED = 1.0  # seconds a new worker starts with, and the most that idle time can accumulate


class Allowance:
    """The time budget for running single rows. Times are seconds, on any one monotonic clock.

    The budget grows as time passes. A batch's reruns start if any budget is left and are then finished; an overrun must
    be earned back before the next. The reruns never take more than `saved`, plus `share` of the time, plus one batch.
    """

    def __init__(self, now: float, share: float = SHARE, saved: float = SAVED) -> None:
        self._share = share
        self._saved = saved
        self._left = saved
        self._at = now

    def __repr__(self) -> str:
        return f"<Allowance {self._left:g} s at {self._at:g}>"

    def left(self, now: float) -> float:
        """Return the seconds that may be spent; zero or less if the budget is used up."""
        return min(self._saved, self._left + self._share * (now - self._at))

    def spend(self, began: float, ended: float) -> None:
        """Charge the time during which rows ran alone, from `began` to `ended`."""
        self._left = self.left(ended) - (ended - began)
        self._at = ended


def may_isolate(error: BaseException, rows: Sequence[RequestProcessor]) -> bool:
    """Return whether rows may run alone after the handler raised for all of them.

    Not after a deliberate error (a PredictionException, or a row's status was set), nor a result of the wrong length,
    which is no row's fault, nor when the handler exited or was interrupted.
    """
    kind = type(error)  # an exception's `__class__`, which `isinstance` reads, may raise
    if not issubclass(kind, Exception) or issubclass(kind, (PredictionException, InvalidResult)):
        return False
    return not any(row.status_was_set for row in rows)
