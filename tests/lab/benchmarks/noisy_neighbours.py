"""The cost of a printing handler for another model: `python -m tests.lab.benchmarks.noisy_neighbours`.

[--seconds 4] [--rounds 3]

One client asks a model that answers at once, alone and beside a model that prints: 120 000 short lines a request, then
as much as a pipe takes. Printed are the quiet model's latencies in ms, and how much of a core the daemon takes.
"""

import argparse
import contextlib
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.e2e.served import Served
from tests.lab.benchmarks.clients import Seen, drive

WAYS = {"alone": b"", "beside 120 000 short lines a request": b"lines 120000", "beside a full pipe": b"seconds 1"}


@contextlib.contextmanager
def printing(served: Served, body: bytes) -> Iterator[None]:
    """Ask the model that prints, one request after the other; nothing without a body."""
    over = threading.Event()

    def ask() -> None:
        while body and not over.is_set():
            served.ask("/predictions/prints", body)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()


def cpu_seconds(pid: int) -> float:
    """Seconds of a core that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(served: Served, body: bytes, seconds: float) -> tuple[Seen, float]:
    with printing(served, body):
        spent, began = cpu_seconds(served.pid), perf_counter()
        seen = drive(served, "sized", 1, seconds, b"x")
        return seen, (cpu_seconds(served.pid) - spent) / (perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tsctl-noisy-") as folder:
        served = Served(Path(folder))
        served.start()
        try:
            served.register("sized", "--batch-size", "1")
            served.register("prints", "--batch-size", "1")
            found: dict[str, list[tuple[Seen, float]]] = {name: [] for name in WAYS}
            for _ in range(given.rounds):
                for name, body in WAYS.items():
                    found[name].append(measure(served, body, given.seconds))
        finally:
            served.stop()
    print(f"{'medians':40}{'p50 ms':>10}{'p99 ms':>10}{'daemon, cores':>16}")
    for name, each in found.items():
        p50, p99 = (median(getattr(seen, field) for seen, _ in each) * 1000 for field in ("p50", "p99"))
        print(f"{name:40}{p50:>10.2f}{p99:>10.2f}{median(cores for _, cores in each):>16.2f}")


if __name__ == "__main__":
    main()
