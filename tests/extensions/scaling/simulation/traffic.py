"""Arrivals whose rate changes: Poisson, drawn by thinning (Lewis and Shedler, 1979). Times in seconds."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.lab.policies.loads import Churn, Load, Open
from tests.lab.policies.world import World

Rate = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Varying(Open):
    """Poisson arrivals of `rate` a second, a function of the time, at most `highest`."""

    rate: Rate
    highest: float

    def moments(self, world: World) -> Iterator[float]:
        at, began = 0.0, world.clock.now()
        while True:
            at += world.random.expovariate(self.highest)
            if world.random.random() * self.highest < self.rate(at):
                yield began + at


@dataclass(frozen=True, slots=True)
class Scenario:
    """Traffic for so many seconds."""

    name: str
    load: Load
    seconds: float


def steps(levels: Sequence[tuple[float, float]]) -> Rate:
    """Return a rate that changes at once: (from this second on, arrivals a second), in order."""

    def rate(at: float) -> float:
        return [level for begins, level in levels if begins <= at][-1]

    return rate


def ramp(low: float, high: float, up: float, stay: float) -> Rate:
    """Return a rate that rises from `low` to `high` within `up` seconds, stays, and falls again."""

    def rate(at: float) -> float:
        position = min(at, 2 * up + stay - at) / up
        return low + (high - low) * min(1.0, max(0.0, position))

    return rate


def bursts(base: float, high: float, length: float, period: float) -> Rate:
    """Return a rate of `base`, and of `high` for the last `length` seconds of each period."""
    return lambda at: high if at % period >= period - length else base


def day(low: float, high: float, seconds: float) -> Rate:
    """Return a rate that follows a sine from `low` to `high` and back within so many seconds."""
    return lambda at: low + (high - low) * (1 - math.cos(2 * math.pi * at / seconds)) / 2


def scenarios(capacity: float) -> list[Scenario]:
    """Return the traffic of the table; `capacity` is what one worker answers in a second."""
    clients = [(300.0, 4), (600.0, 24), (600.0, 4)]
    return [
        Scenario("constant, 1.4 workers' worth", Varying(lambda at: 1.4 * capacity, 1.4 * capacity), 1800.0),
        Scenario(
            "steps, 0.5 → 3.5 → 0.5",
            Varying(steps([(0.0, 0.5 * capacity), (300.0, 3.5 * capacity), (900.0, 0.5 * capacity)]), 3.5 * capacity),
            1500.0,
        ),
        Scenario(
            "ramp, 0.2 → 4.5 → 0.2", Varying(ramp(0.2 * capacity, 4.5 * capacity, 600.0, 300.0), 4.5 * capacity), 1800.0
        ),
        Scenario(
            "bursts, 0.4, and 3 for 10 s of 120 s",
            Varying(bursts(0.4 * capacity, 3.0 * capacity, 10.0, 120.0), 3.0 * capacity),
            1800.0,
        ),
        Scenario(
            "a day within an hour, 0.1 to 4.5",
            Varying(day(0.1 * capacity, 4.5 * capacity, 3600.0), 4.5 * capacity),
            3600.0,
        ),
        Scenario("clients that wait, 4 → 24 → 4", Churn(clients), 1500.0),
    ]  # fmt: skip
