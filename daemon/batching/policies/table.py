"""The collectors by name."""

from tsctl.daemon.batching.policies.auto import Auto
from tsctl.daemon.batching.policies.collector import Collector, Facts, Send, Wait, latest
from tsctl.daemon.batching.traffic.times import BatchTimes
from tsctl.daemon.batching.traffic.traffic import Traffic


class RowByRow:
    """`row_by_row`: each job goes to a worker as soon as that has a free place; for versions that run single rows.

    The input that has already arrived is read first, once: requests that come together begin with the same call of the
    handler. Otherwise the call runs with the first of them, and the others wait for it to end. A request that comes
    alone waits for one turn of the event loop, some microseconds.
    """

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


class Greedy:
    """`greedy`: an idle worker takes all waiting jobs, up to a batch, at once.

    Args:
        batch_size: at least 1.
    """

    name = "greedy"

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size

    def decide(self, facts: Facts, now: float) -> Send:  # noqa: ARG002 - the time does not matter here
        if facts.waiting >= self._batch_size:
            return Send(self._batch_size, "full")
        return Send(facts.waiting, "at_once")

    def drained(self) -> None:
        """Do nothing: this collector has no state."""


class Fixed:
    """`fixed`: TorchServe's rule.

    An idle worker takes the first job and waits up to the maximum delay for company, counted from
    that moment, not from the job's arrival; jobs that already wait join at once. A batch size of 1
    never waits. (TorchServe 0.12, BatchAggregator and Model.pollBatch.) Only a deadline, which TorchServe
    does not have, shortens the wait.

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


def make_collector(
    policy: str, batch_size: int, max_delay: float, traffic: Traffic, *, first: int = 0, rows: bool = False
) -> Collector:
    """Return a new collector; `policy` is a value of the model setting, `max_delay` in seconds.

    Args:
        first: at most so many requests in a batch at first, where the policy learns how many pay; 0 for the batch size.
        rows: the version runs row by row: there is no batch to wait for.
    """
    traffic.halves = None  # `auto` wants it …
    if rows or policy != "auto":
        traffic.best = None  # … and this, of which it keeps what is known
    if rows:
        return RowByRow()
    if policy == "greedy":
        return Greedy(batch_size)
    if policy == "fixed":
        return Fixed(batch_size, max_delay, traffic.times)
    return Auto(batch_size, max_delay, traffic, first)
