"""`fixed`: TorchServe's rule.

An idle worker takes the first job and waits up to the maximum delay for company, counted from
that moment, not from the job's arrival; jobs that already wait join at once. A batch size of 1
never waits. (TorchServe 0.12, BatchAggregator and Model.pollBatch.) Only a deadline, which TorchServe
does not have, shortens the wait.
"""

from tsctl.daemon.batching.policies.collector import Facts, Send, Wait, latest
from tsctl.daemon.batching.traffic.times import BatchTimes


class Fixed:
    """The collector `fixed`.

    Args:
        batch_size: at least 1.
        max_delay: seconds, at least 0.
        times: predict how long a batch takes, for deadlines.
    """

    name = "fixed"

    def __init__(self, batch_size: int, max_delay: float, times: BatchTimes | None = None) -> None:
        self._batch_size = batch_size
        self._max_delay = max_delay
        self._times = times or BatchTimes()
        self._forming_since: float | None = None  # when a worker took the first job of the next batch

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        if facts.waiting >= self._batch_size:
            return self._send(self._batch_size, "full")
        if facts.stopping:
            return self._send(facts.waiting, "stopping")
        # A job may have been held before: the policy is new, or the job comes from a comparison with suspects.
        held = now if facts.held is None else facts.held
        since = held if self._forming_since is None else min(self._forming_since, held)
        self._forming_since = since
        due = since + self._max_delay
        if now >= due:
            return self._send(facts.waiting, "delay")
        due = min(due, latest(facts, self._times))
        if now >= due:
            return self._send(facts.waiting, "deadline")
        return Wait(due)

    def drained(self) -> None:
        self._forming_since = None

    def _send(self, count: int, reason: str) -> Send:
        self._forming_since = None
        return Send(count, reason)
