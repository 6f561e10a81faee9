"""Clients of several workers: how `auto` cuts them into batches, beside every constant cut.

A *constant cut* always sends batches of one size, or cuts the clients evenly into a number of batches; it is told how
many clients there are, and holds no request longer than the maximum delay. The best of them is found anew for each row.
"""

import itertools
import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean

from daemon.batching.auto import Auto
from daemon.batching.collector import Collector
from daemon.batching.learned.traffic import Traffic
from daemon.simulate.loads import Closed
from daemon.simulate.rules import Constant
from daemon.simulate.world import Model, World

NEAR_ENOUGH = 0.95  # of the best constant cut, in every row
REQUESTS = 2500  # of a run; the first fifth does not count
SEEDS = (1, 2)
# What a batch takes: name, a, c and the maximum delay, in seconds.
CURVES = (
    ("50 + 10 n", 0.050, 0.010, 0.100),
    ("8 + 0.4 n", 0.008, 0.0004, 0.020),
    ("6 + 24 n", 0.006, 0.024, 0.050),
)


@dataclass(frozen=True, slots=True)
class Case:
    """So many clients of so many workers.

    Attributes:
        curve: of what a batch takes.
        cores: that the workers share.
        spread: seconds within which the clients begin; 0.0 for all at once.
    """

    curve: str
    workers: int
    cores: float
    spread: float
    clients: int
    model: Model = field(repr=False)

    @property
    def name(self) -> str:
        cores = "a core each" if self.cores >= self.workers else f"{self.cores:g} core{'s' * (self.cores > 1)}"
        return f"{self.curve} ms, batch {self.model.batch_size}, {self.workers} workers, {cores}, {self.started}"

    @property
    def started(self) -> str:
        return "at random" if self.spread else "at once"

    def cuts(self) -> list[tuple[int, int]]:
        """The constant cuts: the least and the most of a batch."""
        size = self.model.batch_size
        even = [
            (max(1, self.clients // parts), -(-self.clients // parts))
            for parts in range(1, self.workers + 2)
            if -(-self.clients // parts) <= size
        ]
        return sorted({*((each, each) for each in range(1, min(size, self.clients) + 1)), *even})

    def run(self, collector: "Make", seed: int, requests: int = REQUESTS) -> float:
        """Answers a second."""
        world = World(self.model, collector, seed)
        Closed(self.clients, spread=self.spread).start(world)
        finished = world.run(requests).finished
        world.measured.finished = finished[len(finished) // 5 :]
        return world.measured.throughput


class Make:
    """A constant cut, whatever the model."""

    def __init__(self, least: int, most: int) -> None:
        self._cut = least, most

    def __call__(self, batch_size: int, max_delay: float, traffic: Traffic) -> Collector:  # noqa: ARG002 - it learns nothing
        return Constant(*self._cut, max_delay)


@dataclass(frozen=True, slots=True)
class Result:
    """Answers a second: of `auto`, and of the best constant cut, with the least and the most of its batches."""

    case: Case
    auto: float
    best: float
    cut: tuple[int, int]

    @property
    def ratio(self) -> float:
        return self.auto / self.best


def cases(batch_sizes: Sequence[int] = (8,), curves: Sequence[tuple[str, float, float, float]] = CURVES) -> list[Case]:
    """All rows: curves × workers × cores × starts × clients."""
    found = []
    for size, (name, a, c, delay), workers in itertools.product(batch_sizes, curves, (2, 3, 4)):
        for cores, spread in itertools.product((workers, 1) if workers < 4 else (4, 2, 1), (0.0, a + c * size)):
            model = Model(a=a, c=c, batch_size=size, max_delay=delay, workers=workers, cores=cores)
            half = size // 2
            numbers = sorted({1, 2, half, size - 1, size, size + 1, size + half, 2 * size})
            found += [Case(name, workers, cores, spread, clients, model) for clients in numbers]
    return found


def measure(case: Case, seeds: Sequence[int] = SEEDS, requests: int = REQUESTS) -> Result:
    """Run `auto` and every constant cut, with each seed."""
    best, cut = max(
        (fmean(case.run(Make(*cut), seed, requests) for seed in seeds), cut) for cut in case.cuts()
    )
    auto = fmean(case.run(Auto, seed, requests) for seed in seeds)
    return Result(case, auto, best, cut)
