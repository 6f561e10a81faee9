"""Two busy models on the same cores: what the threads of one cost the other while they wait.

python -m tests.lab.benchmarks.neighbours [--seconds 5] [--rounds 3]

The same archive is served twice, each with as many threads as there are cores, alone and then both at once, with
libgomp's own count of spins and with the daemon's (daemon/config/worker_env.py), in turns.
"""

import argparse
import concurrent.futures
import statistics
import tempfile
from pathlib import Path

from tests.e2e.served import Served
from tests.lab.benchmarks.clients import drive

MODEL, BODY, CLIENTS = "convolutions", bytes(3 * 64 * 64), 4
NAMES = ("one", "other")
OWN = "300000"  # https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html


def serve(folder: Path, spins: str | None) -> Served:
    """Start a daemon that serves both."""
    folder.mkdir()
    served = Served(folder)
    if spins is not None:
        served.environment["GOMP_SPINCOUNT"] = spins
    served.start()
    for name in NAMES:
        served.tsctl("register", served.pack(MODEL, name), "--batch-size", "8")
    return served


def measure(served: Served, seconds: float) -> tuple[float, float]:
    """Answers a second of one model alone, and of both at once."""
    alone = drive(served, NAMES[0], CLIENTS, seconds, BODY).throughput
    with concurrent.futures.ThreadPoolExecutor() as both:
        seen = both.map(lambda name: drive(served, name, CLIENTS, seconds, BODY).throughput, NAMES)
        return alone, sum(seen)


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve two models on the same cores.")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tsctl-neighbours-") as folder:
        ours, own = serve(Path(folder) / "ours", None), serve(Path(folder) / "own", OWN)
        try:
            ways = {f"libgomp's own spins ({OWN})": own, "the daemon's": ours}
            seen: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
            for _ in range(given.rounds):
                for name, served in ways.items():
                    seen[name].append(measure(served, given.seconds))
        finally:
            ours.stop()
            own.stop()
    print(f"{'req/s, medians':34}{'alone':>10}{'two models, both':>20}")
    for name, each in seen.items():
        alone, both = (statistics.median(column) for column in zip(*each, strict=True))
        print(f"{name:34}{alone:>10.0f}{both:>20.0f}")


if __name__ == "__main__":
    main()
