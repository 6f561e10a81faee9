"""`python -m tests.lab.benchmarks.streams`: tokens a second of a served engine over those of its loop without a server.

    [--rounds 9] [--sources] [--eager] [--halting]

Runs on the compiled modules of a wheel, which it builds first (minutes); `--sources` runs the sources, `--eager` wakes
the clients for each token, `--halting` lets cores halt while first tokens are measured. In each round both loops run,
one after the other. Printed are medians.
"""

import argparse
import os
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from tests.compiled import COMPILED, run_compiled
from tests.e2e.served import Served
from tests.lab.benchmarks.measuring.awake import cores_awake
from tests.lab.benchmarks.streams import engine
from tests.lab.benchmarks.streams.client import Clients
from tests.lab.benchmarks.streams.rounds import (
    STREAMS,
    Cores,
    Measured,
    measure_bare,
    measure_served,
    measure_single,
    report,
)

ROUNDS = 9
CONFIG = f"minWorkers: 1\nmaxWorkers: 1\nbatchSize: {STREAMS}\ncontinuousBatching: true\n"


def measure(rounds: int, *, eager: bool, halting: bool) -> Measured:
    """Measure both loops in turns."""
    cores: Cores = nullcontext if halting else cores_awake
    made = Measured()
    with tempfile.TemporaryDirectory(prefix="tsctl-streams-") as folder:
        served = Served(Path(folder))
        served.start()
        try:
            config = served.folder / "config.yaml"
            config.write_text(CONFIG)
            served.register(engine.__file__.removesuffix(".py"), name="engine", config_file=config)
            [worker] = served.describe("engine")["workers"]
            port = int(served.url.rpartition(":")[2])
            clients = Clients(port, STREAMS, eager=eager)
            for _ in range(rounds):
                measure_bare(made.bare, cores)
                measure_served(served, worker["pid"], clients, made, cores)
                measure_single(port, made, cores)
            clients.close()
        finally:
            served.stop()
    return made


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.benchmarks.streams", description="Token streams.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often both loops run ({ROUNDS})")
    parser.add_argument("--sources", action="store_true", help="run the sources, not the compiled modules")
    parser.add_argument("--eager", action="store_true", help="wake the clients for each token")
    parser.add_argument("--halting", action="store_true", help="let cores halt while first tokens are measured")
    given = parser.parse_args(arguments)
    if not given.sources and COMPILED not in os.environ:
        return run_compiled("tests.lab.benchmarks.streams", arguments)
    report(measure(given.rounds, eager=given.eager, halting=given.halting))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
