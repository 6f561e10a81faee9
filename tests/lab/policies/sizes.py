"""Batches that cost what batches of real models cost: `auto`, compared with the best batch size, found by search.

python -m tests.lab.policies.sizes [--markdown FILE]; exits 1 if `auto` is not near enough to the best.
"""

import argparse
import gc
import itertools
import math
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.lab.percentile import nearest_rank
from tests.lab.policies.loads import Closed, Load, Poisson
from tests.lab.policies.page import insert
from tests.lab.policies.rules import Constant
from tests.lab.policies.world import MakeCollector, Measured, SimulatedModel, World
from tsctl.daemon.batching.policies.auto import Auto
from tsctl.daemon.batching.policies.collector import Collector
from tsctl.daemon.batching.traffic.traffic import Traffic
from tsctl.daemon.models.registering.spec import FIRST

NEAR_ENOUGH = 0.95  # of the rate of the best size …
AS_SOON = 1.1  # … and times its 99th percentile, at most
NEVER_BELOW = 0.97  # of the rate of batches of one
# One seed cannot judge: a constant size beside itself, with another seed, has 0.92 to 1.10 of the percentile.
SEEDS = (1, 2, 3)
REQUESTS = 18_000  # of `auto` in a closed loop, of which the first half, in which it learns, is left out
OPEN = 30_000  # of independent requests, of which two thirds are left out: what has piled up until then is answered
FEWER = 1800  # of each constant size, to find the best: those whose rate or percentile is within …
CONTENDERS = 1.05  # … so many times the best are compared with as many requests as `auto`, …
MOST_CONTENDERS = 3  # … or the best ones of these
NOISE = 0.1
CLIENTS = (1, 8, 32, 128)
LOADS = (0.5, 0.9)  # of independent requests, as shares of the best rate
PLACES = ((1, 1.0), (2, 2.0), (2, 1.0), (4, 4.0))  # workers, cores


def constant(least: int, most: int) -> MakeCollector:
    """Return a factory of the rule of batches of these sizes."""
    return partial(_constant, least, most)


def _constant(least: int, most: int, batch_size: int, max_delay: float, traffic: Traffic) -> Collector:
    return Constant(least, most, max_delay)


def up_to(size: float) -> int:
    """Return the power of two that a batch is padded to."""
    return 1 << max(0, math.ceil(size) - 1).bit_length()


class Curve(NamedTuple):
    """What a batch of n takes: in words, in seconds, and the batch size that is set."""

    name: str
    seconds: Callable[[float], float]
    batch_size: int


CURVES = (
    Curve("25 n", lambda n: 0.025 * n, 8),
    Curve("6 + 24 n", lambda n: 0.006 + 0.024 * n, 8),
    Curve("42 for one, 50 n", lambda n: 0.042 if n <= 1 else 0.050 * n, 8),
    Curve("30 n^1.3", lambda n: 0.030 * n**1.3, 8),
    Curve("400 n^1.5", lambda n: 0.400 * n**1.5, 8),
    Curve("2 + 4 n, and 12 for each above 4", lambda n: 0.002 + 0.004 * n + 0.012 * max(0.0, n - 4), 16),
    Curve("10 + 3 n + 0.4 n²", lambda n: 0.010 + 0.003 * n + 0.0004 * n * n, 32),
    Curve("0.3 + 0.2 n", lambda n: 0.0003 + 0.0002 * n, 32),
    Curve("8 + 0.4 n", lambda n: 0.008 + 0.0004 * n, 32),
    Curve("4 + 0.4 n, in powers of two", lambda n: 0.004 + 0.0004 * up_to(n), 32),
    Curve("10, and 2 for each above 8", lambda n: 0.010 + 0.002 * max(0.0, n - 8), 32),
    Curve("1.5 + 0.05 n", lambda n: 0.0015 + 0.00005 * n, 32),
)


class Case(NamedTuple):
    """Batch times, workers, the cores that they share, and the clients; or independent requests, by their load."""

    curve: int
    workers: int
    cores: float
    clients: int = 0
    load: float = 0.0

    def __str__(self) -> str:
        return f"{CURVES[self.curve].name}; {self.place}, {self.clients or self.load:g}"

    @property
    def place(self) -> str:
        cores = "a core each" if self.cores >= self.workers else "1 core"
        return "1 worker" if self.workers == 1 else f"{self.workers} workers, {cores}"

    @property
    def model(self) -> SimulatedModel:
        curve = CURVES[self.curve]
        return SimulatedModel(
            curve=curve.seconds, batch_size=curve.batch_size, max_delay=0.020, workers=self.workers, cores=self.cores,
            noise=NOISE,
        )  # fmt: skip

    @property
    def sizes(self) -> list[int]:
        """Return the constant sizes that are tried."""
        most = self.model.batch_size
        steps = {each for octave in range(6) for each in (1 << octave, 3 << octave >> 1)}
        return sorted(each for each in {*steps, most} if each <= min(most, self.clients or most))

    def run(self, collector: MakeCollector, load: Load, requests: int, size: int = 0, seed: int = 1) -> Measured:
        model = self.model
        world = World(replace(model, batch_size=size or model.batch_size), collector, seed)
        load.start(world)
        return world.run(requests).settled(2 / 3 if requests == OPEN else 1 / 2)


class Pooled(NamedTuple):
    """Some runs' requests, taken together: answers a second, and the 99th percentile in seconds."""

    rate: float
    percentile: float


def pooled(runs: Sequence[Measured]) -> Pooled:
    latencies = sorted(latency for run in runs for _, latency in run.finished)
    return Pooled(len(latencies) / sum(len(run.finished) / run.throughput for run in runs), nearest_rank(latencies, 99))


class Result(NamedTuple):
    """`auto` and the best constant size; and the rate in ones."""

    case: Case
    auto: Pooled
    best: Pooled
    size: int
    ones: float

    @property
    def ratio(self) -> float:
        return self.auto.rate / self.best.rate

    @property
    def later(self) -> float:
        return self.auto.percentile / self.best.percentile


def cases() -> list[Case]:
    found = []
    for curve, (workers, cores) in itertools.product(range(len(CURVES)), PLACES):
        found += [Case(curve, workers, cores, clients=each) for each in CLIENTS]
        found += [Case(curve, workers, cores, load=each) for each in LOADS]
    return found


def measure(case: Case, seeds: Sequence[int] = SEEDS) -> Result:
    """Run `auto`, and each constant size; the best ones with as many requests, and the same seeds."""
    load: Load = Closed(case.clients)
    if case.load:
        full = case._replace(clients=128)
        rate = max(full.run(constant(size, size), Closed(128), FEWER, size).throughput for size in full.sizes)
        load = Poisson(case.load * rate)
    least = {size: 1 if case.load else size for size in case.sizes}
    few = {size: pooled([case.run(constant(least[size], size), load, FEWER, size)]) for size in case.sizes}
    # Of fewer requests the rate is up to 5 % off, and the 99th percentile, of nine requests, up to 9 %.
    requests = OPEN if case.load else REQUESTS
    seeds = seeds[:1] if case.clients == 1 else seeds  # nothing is different in another run
    found = {
        size: pooled([case.run(constant(least[size], size), load, requests, size, seed) for seed in seeds])
        for size in best_first(few, case, CONTENDERS)[:MOST_CONTENDERS]
    }
    best = best_first(found, case)[0]
    auto = pooled([case.run(partial(Auto, first=FIRST), load, requests, seed=seed) for seed in seeds])
    return Result(case, auto, found[best], best, found.get(1, few[1]).rate)


def best_first(found: Mapping[int, Pooled], case: Case, within: float = 1.0) -> list[int]:
    """Return the sizes that are the best, or within so many times the best, the best first.

    Of clients that wait for their answers it is the one with the best rate. Of independent requests every size that
    keeps up has the rate of the arrivals: the best is the one that answers soonest.
    """
    most = max(each.rate for each in found.values())
    if not case.load:
        sizes = sorted(found, key=lambda size: -found[size].rate)
        return [size for size in sizes if found[size].rate * within >= most]
    sizes = sorted((size for size in found if found[size].rate > 0.97 * most), key=lambda size: found[size].percentile)
    return [size for size in sizes if found[size].percentile <= within * found[sizes[0]].percentile]


def markdown(results: Sequence[Result]) -> Iterator[str]:
    """Yield the lines of the table: answers a second, the ratio to the best size, and that of the percentiles."""
    heads = [f"{each} client{'s' * (each > 1)}" for each in CLIENTS] + [f"load {each:g}" for each in LOADS]
    yield f"| ms a batch, workers | {' | '.join(heads)} |"
    yield "|---|" + "---:|" * len(heads)
    for (curve, place), row in itertools.groupby(results, lambda result: (result.case.curve, result.case.place)):
        cells = " | ".join(f"{_rate(each.auto.rate)} {each.ratio:.2f} {each.later:.2f}" for each in row)
        yield f"| {CURVES[curve].name}; {place} | {cells} |"


def _rate(rate: float) -> str:
    return f"{rate:.0f}" if rate >= 100.0 else f"{rate:.3g}"


def is_fast(result: Result) -> bool:
    """Return whether the rate of `auto` is near enough to the best size's, and not behind that of batches of one."""
    return result.ratio >= NEAR_ENOUGH and result.auto.rate >= NEVER_BELOW * result.ones


def is_near(result: Result) -> bool:
    """Return whether `auto` is as fast as the best size, and answers as soon."""
    return is_fast(result) and result.later <= AS_SOON


def text(results: Sequence[Result]) -> str:
    """Return the table, and a sentence about the worst cell."""
    worst, later = min(results, key=lambda result: result.ratio), sorted(result.later for result in results)
    return "\n".join(markdown(results)) + (
        f"\n\n{len(results)} cells; the worst rate {worst.ratio:.2f} of the best size's "
        f"({CURVES[worst.case.curve].name}, {worst.case.place}, {worst.case.clients or worst.case.load:g}), "
        f"the 99th percentile of that size's in the median {later[len(later) // 2]:.2f}, at most {later[-1]:.2f}."
    )


def main(arguments: Sequence[str]) -> int:
    """Measure all cells, on all cores; print the table, and what is not near enough; return 1 if anything is not."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.policies.sizes")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="put the table into this file, into its section")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cells that have this in their words")
    options = parser.parse_args(arguments)
    # Requests refer to their world, and it to them: looking for such circles again and again took half of the time.
    with multiprocessing.Pool(initializer=gc.disable, maxtasksperchild=1) as pool:  # freed as a cell's process ends
        results = pool.map(measure, [case for case in cases() if options.only in str(case)], chunksize=1)
    print(told := text(results))
    missed = [result for result in results if not is_near(result)]
    print(*missed, sep="\n", file=sys.stderr)
    if options.markdown:
        insert(options.markdown, "sizes", told)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
