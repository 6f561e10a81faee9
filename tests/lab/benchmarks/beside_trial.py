"""The cost of a trial (`optimize: auto`) for requests meanwhile: `python -m tests.lab.benchmarks.beside_trial`.

[--seconds 4] [--rounds 4]

One model is asked, while the trial of another one compiles; in every other turn the trial's processes are suspended.
Clients are one and sixteen that ask again at once. Printed are medians of the rounds.
"""

import argparse
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.e2e.served import Served, eventually
from tests.lab.benchmarks import models
from tests.lab.benchmarks.measuring.processes import cpu_of, tree

_ENDED = "the trial has ended: take fewer rounds, or shorter ones"
ASKED, TRIED = "resnet18", "other"


class Load(NamedTuple):
    """Requests a second, seconds, and the CPU seconds that the trial had meanwhile."""

    rate: float
    p50: float
    p99: float
    cpu: float


def trial_of(served: Served) -> int:
    """Return the process of the daemon's trial."""
    for process in tree(served.pid):
        with suppress(OSError):
            if b"daemon.tools.optimize" in Path(f"/proc/{process.pid}/cmdline").read_bytes():
                return process.pid
    raise SystemExit(_ENDED)


def ask(served: Served, root: int, seconds: float, connections: int) -> Load:
    before = cpu_of(root)
    load = ("-c", f"{connections}", "-t", f"{seconds}", "--json")
    found = json.loads(served.tsctl("bench", ASKED, str(models.MODELS / "photo.jpg"), *load))
    assert found["errors"] == 0 and set(found["statuses"]) == {"200"}, found
    latency = found["latency"]
    return Load(found["requestsPerSecond"], latency["p50"], latency["p99"], cpu_of(root) - before)


def begin(served: Served) -> int:
    """Register the other model, and return the process of its trial once that compiles."""
    served.tsctl("register", f"{ASKED}.mar", "--model-name", TRIED, "--optimize", "auto")
    assert served.ask(f"/predictions/{TRIED}", (models.MODELS / "photo.jpg").read_bytes()).status == 200
    eventually(lambda: "with compile" in served.describe(TRIED)["tsctl"]["trial"]["text"], "the trial compiles")
    time.sleep(3.0)  # until torch is imported
    return trial_of(served)


def measure(served: Served, rounds: int, seconds: float) -> Iterator[tuple[str, int, Load]]:
    root = begin(served)
    for _ in range(rounds):
        for word, number in (("suspended", signal.SIGSTOP), ("running", signal.SIGCONT)):
            for process in tree(root):
                os.kill(process.pid, number)
            for connections in (1, 16):
                yield word, connections, ask(served, root, seconds, connections)
                if not Path(f"/proc/{root}").exists():
                    raise SystemExit(_ENDED)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tsctl-trial-") as folder:
        served = Served(Path(folder))
        served.environment["TSCTL_TEMPLATE"] = "true"
        served.start()
        try:
            models.archive(models.resnet(ASKED), served.store, 8, 0.01)
            served.tsctl("register", f"{ASKED}.mar", "--optimize", "none")
            found = list(measure(served, given.rounds, given.seconds))
        finally:
            served.stop()
    print(f"{'trial':11}{'clients':>8}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}{'its CPU s':>11}")
    for word, connections in dict.fromkeys((word, connections) for word, connections, _ in found):
        loads = [load for *turn, load in found if turn == [word, connections]]
        rate, p50, p99, cpu = (median(column) for column in zip(*loads, strict=True))
        print(f"{word:11}{connections:>8}{rate:>10.1f}{p50 * 1000:>9.1f}{p99 * 1000:>9.1f}{cpu:>11.1f}")


if __name__ == "__main__":
    main()
