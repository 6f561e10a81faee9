"""Clients of several workers: how `auto` splits them into batches, compared with every constant cut.

A *constant cut* always sends batches of one size, or splits the clients evenly into a number of batches; the cut knows
the number of clients, and holds no request longer than the maximum delay. The best cut is found anew for each row.

python -m tests.lab.policies.workers [--markdown FILE]; exits 1 if `auto` is not near enough to the best.
"""

import itertools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean

from tests.lab.policies.loads import Closed
from tests.lab.policies.page import compare
from tests.lab.policies.rules import Constant
from tests.lab.policies.world import MakeCollector, SimulatedModel, World
from tsctl.daemon.batching.policies.auto import Auto
from tsctl.daemon.batching.policies.collector import Collector
from tsctl.daemon.batching.traffic.traffic import Traffic

NEAR_ENOUGH = 0.95  # of the best constant cut, in every row
REQUESTS = 2500  # in a run of `auto`; the first fifth is discarded
FEWER = 1200  # in a run of a constant cut, which learns nothing
SEEDS = (1, 2, 3)
BATCH_SIZES = (8, 4)
# Batch times: name, a, c and the maximum delay, in seconds.
CURVES = (
    ("50 + 10 n", 0.050, 0.010, 0.100),
    ("8 + 0.4 n", 0.008, 0.0004, 0.020),
    ("6 + 24 n", 0.006, 0.024, 0.050),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A number of clients on a number of workers.

    Attributes:
        curve: the name of the batch times.
        cores: the number of cores shared by the workers.
        spread: seconds within which the clients start; 0.0 for all at once.
    """

    curve: str
    workers: int
    cores: float
    spread: float
    clients: int
    model: SimulatedModel = field(repr=False)

    @property
    def name(self) -> str:
        cores = "a core each" if self.cores >= self.workers else f"{self.cores:g} core{'s' * (self.cores > 1)}"
        return f"{self.curve} ms, batch {self.model.batch_size}, {self.workers} workers, {cores}, {self.started}"

    @property
    def started(self) -> str:
        return "at random" if self.spread else "at once"

    def cuts(self) -> list[tuple[int, int]]:
        """Return the constant cuts: the minimum and maximum size of a batch."""
        size = self.model.batch_size
        even = [
            (max(1, self.clients // parts), -(-self.clients // parts))
            for parts in range(1, self.workers + 2)
            if -(-self.clients // parts) <= size
        ]
        return sorted({*((each, each) for each in range(1, min(size, self.clients) + 1)), *even})

    def run(self, collector: MakeCollector, seed: int, requests: int) -> float:
        """Return the throughput in responses a second."""
        world = World(self.model, collector, seed)
        Closed(self.clients, spread=self.spread).start(world)
        measured = world.run(requests)
        measured.finished = measured.finished[len(measured.finished) // 5 :]
        return measured.throughput


def constant(least: int, most: int) -> MakeCollector:
    """Return a factory of the constant cut with these sizes."""
    return partial(_constant, least, most)


def _constant(least: int, most: int, batch_size: int, max_delay: float, traffic: Traffic) -> Collector:
    return Constant(least, most, max_delay)


@dataclass(frozen=True, slots=True)
class Result:
    """Responses a second of `auto` and of the best constant cut, and that cut's minimum and maximum batch size."""

    case: Case
    auto: float
    best: float
    cut: tuple[int, int]

    @property
    def ratio(self) -> float:
        return self.auto / self.best


def cases(batch_sizes: Sequence[int] = BATCH_SIZES) -> list[Case]:
    """Return all rows: curves × workers × cores × starts × clients."""
    found = []
    for size, (name, a, c, delay), workers in itertools.product(batch_sizes, CURVES, (2, 3, 4)):
        for cores, spread in itertools.product((workers, 1) if workers < 4 else (4, 2, 1), (0.0, a + c * size)):
            model = SimulatedModel(a=a, c=c, batch_size=size, max_delay=delay, workers=workers, cores=cores)
            half = size // 2
            numbers = sorted({1, 2, half, size - 1, size, size + 1, size + half, 2 * size})
            found += [Case(name, workers, cores, spread, clients, model) for clients in numbers]
    return found


def measure(case: Case, seeds: Sequence[int] = SEEDS, requests: int = REQUESTS, fewer: int = FEWER) -> Result:
    """Run `auto` with each seed, and every constant cut once."""
    best, cut = max((case.run(constant(*cut), seeds[0], fewer), cut) for cut in case.cuts())
    return Result(case, fmean(case.run(Auto, seed, requests) for seed in seeds), best, cut)


def markdown(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the tables, one table per batch size: responses a second, and the ratio to the best cut."""
    for size, of_size in itertools.groupby(results, lambda result: result.case.model.batch_size):
        rows = list(of_size)
        numbers = sorted({result.case.clients for result in rows})
        yield f"| batch size {size}, clients | {' | '.join(map(str, numbers))} |"
        yield "|---|" + "---:|" * len(numbers)
        for name, of_name in itertools.groupby(rows, lambda result: result.case.name):
            cells = " | ".join(f"{result.auto:.0f} {result.ratio:.2f}" for result in of_name)
            yield f"| {name} | {cells} |"
        yield ""


def text(results: Sequence[Result]) -> str:
    """Return the tables, and a sentence about the worst row."""
    worst = min(results, key=lambda result: result.ratio)
    return "\n".join(markdown(results)).strip() + (
        f"\n\n{len(results)} rows; the worst {worst.ratio:.3f} of the best constant cut ({worst.case.name}, "
        f"{worst.case.clients} clients, batches of {' to '.join(map(str, sorted({*worst.cut})))})."
    )


if __name__ == "__main__":
    sys.exit(compare("workers", sys.argv[1:], cases(), measure, text, lambda result: result.ratio >= NEAR_ENOUGH))
