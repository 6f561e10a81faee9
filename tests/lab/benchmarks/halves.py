"""Clients served in halves: `python -m tests.lab.benchmarks.halves`.

[--rounds 5] [--clients 8] [--seconds 2] [--sources]

Handlers that are at work for some time a row and a batch (busy_handler.py), under clients that ask again at once, and
are no more than a batch. `fixed` sends all of them together; `auto` may send one half while the other asks anew
(daemon/batching/traffic/halves.py). Both take turns on one daemon, and learn anew in each. Printed are medians, and the
median of the ratios within a round; CPU is that of daemon and worker. Runs the compiled modules of a wheel, which it
builds first (minutes); `--sources` runs the sources.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.compiled import COMPILED, run_compiled
from tests.e2e.served import Served
from tests.lab.benchmarks import busy_handler
from tests.lab.benchmarks.measuring import wrk
from tests.lab.benchmarks.streams.cpu import used_by

COSTS = ((0.0, 0.0), (0.0, 0.03), (0.0, 0.1), (0.0, 0.3), (0.1, 1.0), (5.0, 0.1))  # ms a batch, ms a row
POLICIES = ("fixed", "auto")
BATCH_SIZE = 8
WARM_UP = 1.0  # seconds


class Turn(NamedTuple):
    """Answers a second, and seconds of CPU for each."""

    rate: float
    cpu: float


def measure(served: Served, name: str, policy: str, clients: int, seconds: float) -> Turn:
    served.tsctl("set", name, "--batching", policy)
    [worker] = served.describe(name)["workers"]
    body, url = served.folder / "body", f"{served.url}/predictions/{name}"
    wrk.run(url, body, {}, clients, WARM_UP)
    before = used_by(served.pid).cpu + used_by(worker["pid"]).cpu
    found = wrk.run(url, body, {}, clients, seconds)
    used = used_by(served.pid).cpu + used_by(worker["pid"]).cpu - before
    return Turn(found.rate, used / found.requests)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--sources", action="store_true")
    given = parser.parse_args(arguments)
    if not given.sources and COMPILED not in os.environ:
        return run_compiled("tests.lab.benchmarks.halves", arguments)
    found: dict[tuple[float, float], list[dict[str, Turn]]] = {costs: [] for costs in COSTS}
    with tempfile.TemporaryDirectory(prefix="tsctl-halves-") as folder:
        served = Served(Path(folder))
        served.start()
        try:
            (served.folder / "body").write_bytes(bytes(100))
            for number, (batch, row) in enumerate(COSTS):
                config = served.folder / "config.yaml"
                config.write_text(f"batchMs: {batch}\nrowMs: {row}\nbatchSize: {BATCH_SIZE}\nmaxWorkers: 1\n")
                served.register(busy_handler.__file__.removesuffix(".py"), name=f"m{number}", config_file=config)
            for turn in range(given.rounds):
                for number, costs in enumerate(COSTS):
                    order = POLICIES if turn % 2 == 0 else POLICIES[::-1]
                    found[costs].append(
                        {
                            policy: measure(served, f"m{number}", policy, given.clients, given.seconds)
                            for policy in order
                        }
                    )
        finally:
            served.stop()
    print(f"{'ms a batch':>10}{'ms a row':>10}{'together':>10}{'auto':>8}{'ratio':>7}{'µs of CPU a request':>25}")
    for (batch, row), rounds in found.items():
        rates, cpu = ([median(each[name][at] for each in rounds) for name in POLICIES] for at in (0, 1))
        ratio = median(each["auto"].rate / each["fixed"].rate for each in rounds)
        used = " → ".join(f"{seconds * 1e6:.0f}" for seconds in cpu)
        print(f"{batch:10}{row:10}{rates[0]:10.0f}{rates[1]:8.0f}{ratio:7.2f}{used:>25}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
