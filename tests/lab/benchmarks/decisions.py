"""The collector's cost: µs of CPU for each request, for its decisions and for learning.

python -m tests.lab.benchmarks.decisions
"""

import time
from collections.abc import Callable
from typing import Any

from daemon.batching.policies.auto import Auto
from daemon.batching.policies.collector import Collector, Facts, Send, Wait
from daemon.tools.simulator.world import SimulatedModel
from tests.lab.policies.loads import Closed, Poisson
from tests.lab.policies.rows import MODEL, Row, rate

ROWS = (
    Row("1 client", Closed(1)),
    Row("8 clients", Closed(8)),
    Row("8 clients, a connection a request", Closed(8, kept=False)),
    Row("32 clients, batch 8", Closed(32), SimulatedModel(batch_size=8)),
    Row("8 clients, batch 8, 2 workers", Closed(8), SimulatedModel(batch_size=8, workers=2)),
    Row("32 clients, batch 32, 4 workers", Closed(32), SimulatedModel(workers=4)),
    Row("Poisson, load .3", Poisson(rate(0.3, MODEL))),
    Row("Poisson, load .9", Poisson(rate(0.9, MODEL))),
)
REQUESTS = 20_000


class Timed:
    """A collector that adds up what it costs."""

    def __init__(self, collector: Collector) -> None:
        self.name = collector.name
        self.drained = collector.drained
        self.calls = 0
        self.seconds = 0.0
        self._decide = collector.decide

    def decide(self, facts: Facts, now: float) -> Send | Wait:
        began = time.thread_time()
        decision = self._decide(facts, now)
        self.seconds += time.thread_time() - began
        self.calls += 1
        return decision


def timed(call: Callable[..., Any], total: list[float]) -> Callable[..., Any]:
    def wrapped(*arguments: Any) -> Any:
        began = time.thread_time()
        result = call(*arguments)
        total[0] += time.thread_time() - began
        return result

    return wrapped


def decisions(row: Row) -> tuple[int, float]:
    """How often a collector is asked, and the seconds that takes."""
    world = row.world("auto")
    collector = world.dispatcher.collector = Timed(Auto(row.model.batch_size, row.model.max_delay, world.traffic))
    world.run(REQUESTS)
    return collector.calls, collector.seconds


def learning(row: Row) -> float:
    """The seconds that it takes to learn from the traffic."""
    world = row.world("auto")
    total = [0.0]
    for owner, names in (
        (world.traffic, ("arrived", "returned")),
        (world.traffic.callers, ("taken", "ended", "queued")),
    ):
        for name in names:
            setattr(owner, name, timed(getattr(owner, name), total))
    world.run(REQUESTS)
    return total[0]


def main() -> None:
    print(f"{'':36}{'decisions':>10}{'µs each':>9}{'µs/request':>12}{'learning µs/request':>21}")
    for row in ROWS:
        calls, seconds = decisions(row)
        learned = learning(row)
        print(
            f"{row.name:36}{calls:>10}{seconds / calls * 1e6:>9.2f}{seconds / REQUESTS * 1e6:>12.2f}"
            f"{learned / REQUESTS * 1e6:>21.2f}"
        )


if __name__ == "__main__":
    main()
