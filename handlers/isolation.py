"""A handler raised for a batch: its rows run again, each alone, so that only those fail that are to blame.

Not always: what a handler says on purpose stands, and the runs take time that other batches wait for.
So at most a tenth of a worker's time goes into them; beyond it a batch fails whole.
"""

from collections.abc import Sequence

from handlers.context import RequestProcessor
from handlers.errors import InvalidResult, PredictionException

SHARE = 0.1  # of a worker's time
SAVED = 1.0  # seconds that a new worker has, and the most that a quiet time saves


class Allowance:
    """How much time may go into runs of single rows. Times are seconds, on any one clock that never goes back.

    It grows as time passes. A batch's runs are begun if something is left, and then finished: what they take too
    much has to be earned before the next. So they never take more than `saved`, `share` of the time, and one batch.
    """

    def __init__(self, now: float, share: float = SHARE, saved: float = SAVED) -> None:
        self._share = share
        self._saved = saved
        self._left = saved
        self._at = now

    def __repr__(self) -> str:
        return f"<Allowance {self._left:g} s at {self._at:g}>"

    def left(self, now: float) -> float:
        """Seconds that may be spent; none or less if it is used up."""
        return min(self._saved, self._left + self._share * (now - self._at))

    def spend(self, began: float, ended: float) -> None:
        """Rows ran alone from `began` to `ended`."""
        self._left = self.left(ended) - (ended - began)
        self._at = ended


def may_isolate(error: BaseException, rows: Sequence[RequestProcessor]) -> bool:
    """Say whether rows may run alone after the handler raised for all of them.

    Not what it says on purpose, by a PredictionException or the status of a row; nor for a result of the wrong
    length, which is no row's fault; nor when it wanted to end the process or was interrupted.
    """
    if not isinstance(error, Exception) or isinstance(error, (PredictionException, InvalidResult)):
        return False
    return not any(row.status_was_set for row in rows)
