"""The facts and the answer of the rule for the number of workers. All times in seconds."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScalingChange:
    """A change of the number of workers that the rule has made."""

    at: float
    before: int
    after: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchModel:
    """The learned times of batches: one of n requests takes per_batch + per_job·n.

    Attributes:
        size: the most requests in a batch.
        places: how many batches a worker runs at the same time: more than 1 where requests run on their own.
        known: whether any batch has been measured.
    """

    per_batch: float = 0.0
    per_job: float = 0.0
    size: int = 1
    places: int = 1
    known: bool = True

    def seconds(self, size: float) -> float:
        """Return the time of a batch."""
        return self.per_batch + self.per_job * size

    def capacity(self, workers: int) -> float:
        """Return the requests a second that so many workers answer in full batches."""
        seconds = self.seconds(self.size)
        return workers * self.places * self.size / seconds if seconds > 0.0 else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingFacts:
    """One version, as the rule sees it.

    Attributes:
        target: the waiting time that is to be kept.
        least, most: the operator's range of workers.
        wanted, ready: workers that there should be, and that have the model.
        failing: places whose worker failed, or ended too early.
        rate: arrivals a second over the last seconds …
        arrivals: … and how many there were: the fewer, the less the rate is trusted.
        waiting: requests that waited while every worker was busy, in the mean over the last seconds.
        trend: by how much that rises in a second; below 0 while a queue is worked off.
        observed: how long that mean has been taken since all wanted workers were ready; 0.0 while some start.
        batches: the learned batch times.
        startup: the time that a worker takes to load the model; 0.0 if unknown.
        quiet_since: since when one worker less would have sufficed, None if not now.
        history: the changes that the rule has made, the oldest first.
        obstacle: why another worker has no room; empty if it has.
        measuring: whether another worker has room is being measured.
        stateful: workers keep the state of open sequences, which would be lost with a worker.
    """

    target: float
    least: int
    most: int
    wanted: int
    ready: int
    failing: int = 0
    rate: float = 0.0
    arrivals: int = 0
    waiting: float = 0.0
    trend: float = 0.0
    observed: float = 0.0
    batches: BatchModel = BatchModel(known=False)
    startup: float = 0.0
    quiet_since: float | None = None
    history: Sequence[ScalingChange] = ()
    obstacle: str = ""
    measuring: bool = False
    stateful: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceMemory:
    """The memory that one more worker needs, of the host or of a GPU.

    Attributes:
        where: the device or its limit, for people: `this machine`, `GPU 1`.
        takes: bytes of the largest worker of the version on such a device; 0 if none of them is known.
        left: bytes that no process takes.
        loading: workers of the version that are to be there, and have not taken theirs yet.
    """

    where: str
    takes: int
    left: int
    loading: int = 0


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """The answer of the rule.

    Attributes:
        workers: how many there should be.
        reason: why, in a few words.
        wait: the predicted waiting time with the present number of workers.
        blocked: another worker would help, and has no room.
    """

    workers: int
    reason: str
    wait: float = 0.0
    blocked: bool = False
