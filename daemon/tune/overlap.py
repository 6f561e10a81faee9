"""Batches, and the daemon and clients around them, on the same cores: where both are at work, both take longer.

By how much is measured (measuring/beside.py); for how much of the time is found while a load is replayed: a closed loop
whose clients all wait for one batch has nothing beside it, one with two batches of clients has always.
"""

import random
from dataclasses import dataclass
from typing import Protocol

FORGETTING = 0.99  # of a batch, or a request: the first ones of a run say little


@dataclass(frozen=True, slots=True)
class Beside:
    """What one does to the other, where both are at work all the time.

    Attributes:
        batches, others: how many times longer batches take, and a request's way.
    """

    batches: float = 1.0
    others: float = 1.0


ALONE = Beside()  # nothing


class Times(Protocol):
    """How long batches take with nothing beside them; see daemon.simulate.world.Service."""

    def seconds(self, size: int, busy: int, chance: random.Random) -> float: ...


class Overlap:
    """The time of batches and of requests' ways, in one run. Moments and durations are seconds of the run.

    Args:
        times: of batches with nothing beside them.
        beside: at most how much longer both take.
    """

    def __init__(self, times: Times, beside: Beside) -> None:
        self._times = times
        self._beside = beside
        self._running: list[float] = []  # when the batches that run will end
        self._busy_until = 0.0  # somebody is on the way until then
        # Sums that forget: of batches' seconds and of others', and how much of each had the other beside it.
        self._batches = self._batches_shared = self._others = self._others_shared = 0.0

    @property
    def shared(self) -> float:
        """The share of the batches' time that had others beside it, lately."""
        return min(1.0, self._batches_shared / self._batches) if self._batches else 0.0

    def batch(self, size: int, busy: int, chance: random.Random, now: float) -> float:
        """Draw the time of a batch that begins now."""
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
        """How many times longer a request's way takes, lately."""
        shared = min(1.0, self._others_shared / self._others) if self._others else 0.0
        return 1 + (self._beside.others - 1) * shared

    def way(self, start: float, seconds: float) -> None:
        """A part of a request's way begins at this moment, and takes so long."""
        both = [max(0.0, min(end, start + seconds) - start) for end in self._running]
        self._others = self._others * FORGETTING + seconds
        self._others_shared = self._others_shared * FORGETTING + max(both, default=0.0)
        self._batches_shared += sum(both)
        self._busy_until = max(self._busy_until, start) + seconds
