"""Eight clients of two workers, on a real daemon: requests a second of several runs, and what the simulator says.

python -m tests.lab.benchmarks.workers [--runs 6] [--seconds 10] [--workers 2] [--clients 8]

A batch of n sleeps 50 ms + n · 10 ms, so it needs no core; batch size 8, delay 100 ms. Each run is a daemon of its own
and one `tsctl bench -c 8`: nothing is learned before. Then the same with a batch size of ⌈clients/workers⌉ and the
policy `fixed`, which cuts the clients evenly: what this machine can do meanwhile. Exits 1 where a run has fewer
requests a second than `--least`.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from daemon.batching.policies.auto import Auto
from daemon.tools.simulator.world import SimulatedModel, World
from tests.e2e.served import Served
from tests.lab.policies.loads import Closed

A, C, BATCH_SIZE, DELAY = 0.050, 0.010, 8, 0.100
LEAST = 84.0  # requests a second: of eight clients of two workers, 4 + 4 give 89


def simulated(workers: int, clients: int, seconds: float) -> float:
    """Requests a second in the simulator, from the first on."""
    world = World(SimulatedModel(a=A, c=C, batch_size=BATCH_SIZE, max_delay=DELAY, workers=workers), Auto)
    Closed(clients).start(world)
    return len(world.run(1_000_000, seconds).finished) / seconds


def run(
    workers: int, clients: int, seconds: float, size: int = BATCH_SIZE, policy: str = "auto"
) -> tuple[float, dict[str, int], dict[str, int]]:
    """Requests a second of a daemon of its own; the sizes of its batches, and why they were sent."""
    with tempfile.TemporaryDirectory(prefix="tsctl-workers-") as folder:
        served = Served(Path(folder))
        served.start()
        try:
            options = ("--workers", str(workers), "--batch-size", str(size), "--max-delay", str(DELAY * 1000))
            served.register("sleeps", *options, "--batching", policy)
            (served.folder / "body").write_bytes(b"x")
            bench = ("bench", "sleeps", "body", "-c", str(clients), "--seconds", str(seconds), "--json")
            found = json.loads(served.tsctl(*bench))
            batching = served.describe("sleeps")["tsctl"]["batching"]
        finally:
            served.stop()
    return found["requestsPerSecond"], batching["sizes"], batching["reasons"]


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure clients of several workers.")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--least", type=float, default=LEAST, help="requests a second that each run must have")
    given = parser.parse_args()
    print(f"simulated {simulated(given.workers, given.clients, given.seconds):.1f} requests a second", flush=True)
    rates = []
    for number in range(1, given.runs + 1):
        rate, sizes, reasons = run(given.workers, given.clients, given.seconds)
        rates.append(rate)
        even, _, _ = run(given.workers, given.clients, given.seconds, -(-given.clients // given.workers), "fixed")
        print(f"run {number}     {rate:.1f}  cut evenly {even:.1f}  sizes {sizes}  reasons {reasons}", flush=True)
    return int(min(rates) < given.least)


if __name__ == "__main__":
    sys.exit(main())
