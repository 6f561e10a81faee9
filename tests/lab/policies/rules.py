"""Other servers' batching rules, from their documentation and source, as collectors, to compare in the same run.

TorchServe's rule is `fixed`; mosec's and Ray Serve's are the same, and LitServe's, whose delay begins again and again
without a request, answers no traffic of rows.py sooner than the best of these (its column was measured at c7eaa4dd).
"""

from collections import deque

from tsctl.daemon.batching.policies.auto import Auto
from tsctl.daemon.batching.policies.collector import Collector, Facts, Send, Wait
from tsctl.daemon.batching.policies.table import Fixed, Greedy
from tsctl.daemon.batching.traffic.traffic import Traffic


class Triton:
    """Triton's delay starts at the arrival of the oldest request, as in TensorFlow Serving."""

    name = "triton"

    def __init__(self, batch_size: int, max_delay: float) -> None:
        self._batch_size = batch_size
        self._max_delay = max_delay

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        if facts.waiting >= self._batch_size:
            return Send(self._batch_size, "full")
        due = facts.arrived + self._max_delay
        return Send(facts.waiting, "delay") if now >= due else Wait(due)

    def drained(self) -> None:
        """Do nothing: the rule keeps no state."""


class BentoML:
    """BentoML's rule learns a batch's time and the mean wait of first requests, and waits for less than that mean.

    Every millisecond the rule checks whether n·(the youngest's wait + 1 ms + the time per request) is still below 0.95
    of that mean wait. (BentoML 1.4, CorkDispatcher.)
    """

    name = "bentoml"
    TICK = 0.001
    DECAY = 0.95
    KEPT = 50  # batches in the means
    REFRESHED = 5  # batches between two updates of the mean wait

    def __init__(self, batch_size: int, traffic: Traffic) -> None:
        self._batch_size = batch_size
        self._traffic = traffic
        self._waits: deque[float] = deque(maxlen=self.KEPT)
        self._wait = 0.01
        self._sent = 0

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        waiting = facts.waiting
        youngest = now - self._traffic.last_arrival
        cost = self._traffic.times.per_job
        if waiting < self._batch_size and waiting * (youngest + self.TICK + cost) <= self._wait * self.DECAY:
            return Wait(now + self.TICK)
        self._waits.append(now - facts.arrived)
        self._sent += 1
        if self._sent % self.REFRESHED == 0:
            self._wait = sum(self._waits) / len(self._waits)
        return Send(min(waiting, self._batch_size), "at_once")

    def drained(self) -> None:
        """Do nothing: the state outlives a drain."""


class Constant:
    """Batches of `least` to `most` jobs; fewer only after one has been held for the delay.

    With least = most every batch has the same size; with ⌊N/j⌋ and ⌈N/j⌉, N clients are split evenly into j batches.
    """

    name = "constant"

    def __init__(self, least: int, most: int, max_delay: float) -> None:
        self._least = least
        self._most = most
        self._max_delay = max_delay

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        due = (now if facts.held is None else facts.held) + self._max_delay
        if facts.waiting >= self._least or now >= due:
            return Send(min(facts.waiting, self._most), "split")
        return Wait(due)

    def drained(self) -> None:
        """Do nothing: the rule keeps no state."""


def make_rule(name: str, batch_size: int, max_delay: float, traffic: Traffic) -> Collector:
    """Return a collector: one of ours, or another server's rule.

    Raises:
        ValueError: there is no rule of this name.
    """
    match name:
        case "auto":
            return Auto(batch_size, max_delay, traffic)
        case "greedy":
            return Greedy(batch_size)
        case "fixed" | "torchserve":
            return Fixed(batch_size, max_delay)
        case "triton":
            return Triton(batch_size, max_delay)
        case "bentoml":
            return BentoML(batch_size, traffic)
    raise ValueError(f"no rule is named {name}")
