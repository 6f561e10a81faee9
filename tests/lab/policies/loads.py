"""The traffic: clients that wait for their responses (closed loops), and arrivals that do not wait (open).

A load is started once on a world and never ends; the run decides how long.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tests.lab.policies.world import World
from tsctl.daemon.core.job import Caller


class Load(Protocol):
    """Traffic that is started once, and never ends."""

    def start(self, world: World) -> None: ...


Turnaround = Callable[[World], float]


def near(world: World) -> float:
    """Draw the seconds from a response to the client's next request: 0.3 ms + Exp(0.7 ms), on the same network."""
    return 0.0003 + world.random.expovariate(1 / 0.0007)


def far(world: World) -> float:
    """Draw the seconds from a response to the client's next request: 5 ms + Exp(15 ms), over a wide area network."""
    return 0.005 + world.random.expovariate(1 / 0.015)


@dataclass(frozen=True, slots=True)
class Closed:
    """Clients that each send the next request some time after the last response.

    Attributes:
        kept: each client keeps one connection alive; else opens a new one for each request.
        spread: seconds within which the clients start, at random; 0.0 for all at once.
    """

    clients: int
    turnaround: Turnaround = near
    kept: bool = True
    spread: float = 0.0

    def start(self, world: World) -> None:
        for _ in range(self.clients):
            begin = partial(self._think, world, Caller())
            if self.spread:
                world.clock.later(world.random.uniform(0.0, self.spread), begin)
            else:
                begin()

    def _think(self, world: World, caller: Caller) -> None:
        if not self.kept:
            caller.close()
            caller = Caller()
        world.clock.later(self.turnaround(world), lambda: world.submit(caller, lambda: self._think(world, caller)))


@dataclass(frozen=True, slots=True)
class Churn:
    """A closed loop whose number of clients changes: `stages` are (seconds, clients)."""

    stages: Sequence[tuple[float, int]]
    turnaround: Turnaround = near

    def start(self, world: World) -> None:
        self._enter(world, 0)

    def _enter(self, world: World, stage: int) -> None:
        seconds, clients = self.stages[stage % len(self.stages)]
        until = world.clock.now() + seconds
        for _ in range(clients):
            self._think(world, Caller(), until)
        world.clock.later(seconds, lambda: self._enter(world, stage + 1))

    def _think(self, world: World, caller: Caller, until: float) -> None:
        if world.clock.now() >= until:
            caller.close()
            return

        def send() -> None:
            world.submit(caller, lambda: self._think(world, caller, until))

        world.clock.later(self.turnaround(world), send)


class Open:
    """Arrivals at times independent of responses, each on its own connection."""

    def moments(self, world: World) -> Iterator[float]:
        """Yield the arrival times in order, in seconds from the start, without end."""
        raise NotImplementedError

    def start(self, world: World) -> None:
        self._next(world, self.moments(world))

    def _next(self, world: World, moments: Iterator[float]) -> None:
        moment = next(moments, None)
        if moment is None:
            return

        def arrive() -> None:
            caller = Caller()
            world.submit(caller, caller.close)
            self._next(world, moments)

        world.clock.later(moment - world.clock.now(), arrive)


@dataclass(frozen=True, slots=True)
class Poisson(Open):
    """Independent arrivals, `rate` per second."""

    rate: float

    def moments(self, world: World) -> Iterator[float]:
        at = 0.0
        while True:
            at += world.random.expovariate(self.rate)
            yield at


@dataclass(frozen=True, slots=True)
class Modulated(Open):
    """Poisson arrivals whose rate alternates between two values, each for an exponential time of mean `dwell` seconds.

    A Markov-modulated Poisson process (MMPP).
    """

    rates: tuple[float, float]
    dwell: float

    def moments(self, world: World) -> Iterator[float]:
        at, state, change = 0.0, 0, world.random.expovariate(1 / self.dwell)
        while True:
            gap = world.random.expovariate(self.rates[state])
            if at + gap < change:
                at += gap
                yield at
            else:  # memoryless: draw again from the change on
                at, state = change, 1 - state
                change += world.random.expovariate(1 / self.dwell)


@dataclass(frozen=True, slots=True)
class Diurnal(Open):
    """Poisson arrivals whose rate per second follows a sine from `low` to `high` in `period` seconds.

    Drawn by thinning (Lewis and Shedler, 1979).
    """

    low: float
    high: float
    period: float

    def moments(self, world: World) -> Iterator[float]:
        at = 0.0
        while True:
            at += world.random.expovariate(self.high)
            rate = self.low + (self.high - self.low) * (1 - math.cos(2 * math.pi * at / self.period)) / 2
            if world.random.random() * self.high < rate:  # thinning
                yield at


@dataclass(frozen=True, slots=True)
class Bursts(Open):
    """`size` arrivals every `period` seconds: one, and the others at random within `spread` seconds after it."""

    size: int
    spread: float
    period: float

    def moments(self, world: World) -> Iterator[float]:
        start = 0.0
        while True:
            yield start
            yield from sorted(start + world.random.uniform(0.0, self.spread) for _ in range(self.size - 1))
            start += self.period


@dataclass(frozen=True, slots=True)
class Recorded(Open):
    """Recorded arrivals in seconds, repeated without end."""

    trace: Sequence[float]

    def moments(self, world: World) -> Iterator[float]:
        first, last = self.trace[0], self.trace[-1]
        length = (last - first) * len(self.trace) / max(1, len(self.trace) - 1)
        start = 0.0
        while True:
            yield from (start + moment - first for moment in self.trace)
            start += length
