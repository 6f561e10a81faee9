"""`row_by_row`: each job goes to a worker as soon as that has a free place; for versions that run rows on their own.

The input that has already arrived is read first, once: requests that come together begin with the same call of the
handler. Otherwise the call runs with the first of them, and the others wait for it to end. A request that comes alone
waits for one turn of the event loop, some microseconds.
"""

from tsctl.daemon.batching.policies.collector import Facts, Send, Wait


class RowByRow:
    """The collector of versions in the modes `continuous` and `async`; no setting chooses it."""

    name = "row_by_row"

    def __init__(self) -> None:
        self._has_read = False  # the pending input, since the last decision to send

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        count = min(facts.waiting, facts.idle)
        if facts.waiting < facts.idle and not self._has_read and not facts.stopping:
            self._has_read = True
            return Wait(now)
        self._has_read = False
        return Send(count, "place", over=count)

    def drained(self) -> None:
        self._has_read = False
