"""The simulator and the daemon, side by side: closed loops of clients over kept connections, and a lone client.

python -m tests.lab.benchmarks.live [--seconds 4]

The model sleeps 8 ms + 0.4 ms a request; batch size 32, delay 20 ms. The simulator gets the number of clients, the
batch times and the turnarounds that the daemon has learned; throughput and batch sizes are compared. Then a lone
client, at a delay of 50 ms: its latency under `auto` over that under `greedy`.
"""

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

from daemon.tools.tune.candidates import Candidate
from daemon.tools.tune.load import LoadPlan, turnarounds_of
from daemon.tools.tune.replay import Overhead, replay
from daemon.tools.tune.times import Curve, PlacementTimes
from tests.e2e.served import Served
from tests.lab.benchmarks.clients import drive
from tsctl.client import DaemonClient

CLIENTS = (1, 2, 8, 33)
BATCH_SIZE, DELAY = 32, 0.020
ROUNDS = 5


def mean_batch(sizes: Counter[int]) -> float:
    return sum(size * count for size, count in sizes.items()) / sizes.total()


def sizes_of(served: Served) -> Counter[int]:
    sizes = served.describe("linear")["tsctl"]["batching"]["sizes"]
    return Counter({int(size): count for size, count in sizes.items()})


def compare(served: Served, clients: int, seconds: float) -> None:
    served.register("linear", "--batch-size", str(BATCH_SIZE), "--max-delay", str(DELAY * 1000))
    seen = drive(served, "linear", clients, seconds, b"x")
    sizes = sizes_of(served)
    learned = served.describe("linear")["tsctl"]["batching"]["learned"]
    a, c = learned["batchMs"] / 1000, learned["requestMs"] / 1000
    control = DaemonClient(Path(served.environment["TSCTL_SOCKET"]))
    turnarounds = turnarounds_of(control.json("GET", "/tsctl/worker/linear"))
    curve = Curve({size: [a + c * size] for size in (1, BATCH_SIZE)})
    plan = LoadPlan(text="", clients=clients, turnarounds=turnarounds)
    point = replay(Candidate(1, 1, BATCH_SIZE, DELAY, "auto"), PlacementTimes(1, 1, {1: curve}), plan, Overhead(), 6000)
    served.tsctl("unregister", "linear")
    print(
        f"{clients:>7}{point.throughput:>12.0f}{seen.throughput:>9.0f}{seen.throughput / point.throughput:>7.2f}"
        f"{point.mean_batch:>14.1f}{mean_batch(sizes):>9.1f}{mean_batch(sizes) / point.mean_batch:>7.2f}",
        flush=True,
    )


def lone(served: Served, seconds: float) -> None:
    served.register("linear", "--batch-size", str(BATCH_SIZE), "--max-delay", "50")
    latencies: dict[str, list[float]] = {"auto": [], "greedy": []}
    for _ in range(ROUNDS):
        for policy, seen in latencies.items():
            served.tsctl("set", "linear", "--batching", policy)
            seen.append(drive(served, "linear", 1, seconds / ROUNDS, b"x").p50)
    auto, greedy = (median(latencies[policy]) * 1000 for policy in ("auto", "greedy"))
    print(f"\na lone client, delay 50 ms: auto {auto:.2f} ms, greedy {greedy:.2f} ms, ratio {auto / greedy:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the simulator with the daemon.")
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tsctl-live-") as folder:
        served = Served(Path(folder))
        served.start()
        try:
            print(f"{'':7}{'requests a second':^28}{'mean batch':^30}")
            print(f"clients{'simulated':>12}{'live':>9}{'ratio':>7}{'simulated':>14}{'live':>9}{'ratio':>7}")
            for clients in CLIENTS:
                compare(served, clients, given.seconds)
            lone(served, given.seconds)
        finally:
            served.stop()


if __name__ == "__main__":
    main()
