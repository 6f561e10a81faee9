"""Batches compete with the daemon and the clients for the same cores: where both run, both slow down.

The slowdown is measured (measuring/contention.py); the overlap is computed while a load is replayed: a closed loop
whose clients all wait for one batch has no overlap, one with two batches of clients always has.
"""

import random
from dataclasses import dataclass
from typing import Protocol

FORGETTING = 0.99  # per batch or request: the first ones of a run are not representative


@dataclass(frozen=True, slots=True)
class Contention:
    """The mutual slowdown of batches and requests, where both run all the time.

    Attributes:
        batches: the factor by which batches take longer.
        others: the factor by which a request's way takes longer.
    """

    batches: float = 1.0
    others: float = 1.0


ALONE = Contention()  # no slowdown


class Times(Protocol):
    """The time of batches without overlap, in seconds; see daemon.tools.simulator.world.Service."""

    def seconds(self, size: float, busy: int, chance: random.Random) -> float: ...


class Overlap:
    """The time of batches and of requests' ways, in one run. Moments and durations are seconds of the run.

    Args:
        times: of batches without overlap.
        beside: the largest slowdown of both.
    """

    def __init__(self, times: Times, beside: Contention) -> None:
        self._times = times
        self._beside = beside
        self._running: list[float] = []  # when the running batches will end
        self._busy_until = 0.0  # a request is on its way until then
        # Exponentially decaying sums: seconds of batches and of others, and how much of each overlapped with the other.
        self._batches = self._batches_shared = self._others = self._others_shared = 0.0

    @property
    def shared(self) -> float:
        """The recent fraction of the batches' time that overlapped with others."""
        return min(1.0, self._batches_shared / self._batches) if self._batches else 0.0

    def batch(self, size: float, busy: int, chance: random.Random, now: float) -> float:
        """Draw the time of a batch that starts now, in seconds."""
        seconds = self._times.seconds(size, busy, chance) * (1 + (self._beside.batches - 1) * self.shared)
        self._running = [end for end in self._running if end > now]
        both = max(0.0, min(self._busy_until, now + seconds) - now)
        self._batches = self._batches * FORGETTING + seconds
        self._batches_shared = self._batches_shared * FORGETTING + both
        if not self._running:
            self._others_shared += both
        self._running.append(now + seconds)
        return seconds

    @property
    def slower(self) -> float:
        """The recent factor by which a request's way takes longer."""
        shared = min(1.0, self._others_shared / self._others) if self._others else 0.0
        return 1 + (self._beside.others - 1) * shared

    def way(self, start: float, seconds: float) -> None:
        """Record a part of a request's way, from `start` for `seconds`."""
        both = [max(0.0, min(end, start + seconds) - start) for end in self._running]
        self._others = self._others * FORGETTING + seconds
        self._others_shared = self._others_shared * FORGETTING + max(both, default=0.0)
        self._batches_shared += sum(both)
        self._busy_until = max(self._busy_until, start) + seconds
