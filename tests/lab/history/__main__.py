"""Kill daemons for some minutes, also within upgrades, and check what each serves afterwards; print the seeds.

    python -m tests.lab history [--seconds 180] [--kills 10] [--seed N]

`--kills` is how often the daemon of one seed is killed. The seed after the first one is the next number: `--seed N
--seconds 0` repeats one (what the clients send; how they meet is the machine's).
"""

import itertools
import sys
import tempfile
import time
from argparse import Namespace
from pathlib import Path

from tests.e2e.served import Served
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.storm import run
from tests.lab.history.run import Run, Violation


def storm(served: Served, given: Namespace, ledger: Ledger) -> None:
    """Kill one daemon after the other, each of a seed and in a folder of its own, until the time is over."""
    end = time.monotonic() + given.seconds
    for seed in itertools.count(given.seed):
        with tempfile.TemporaryDirectory(dir=served.folder) as folder:
            one = Run(Served(Path(folder)), seed, upgrades=True)
            try:
                for _ in range(given.kills):
                    one.round()
            except Violation as violation:
                ledger.broken.append(str(violation))
            finally:
                one.end()
                ledger.done += one.played
                ledger.count("commands", one.operations)
        print(f"seed {seed}: {given.kills} kills, {one.operations} commands", flush=True)
        if ledger.broken or time.monotonic() >= end:
            return


def main(arguments: list[str]) -> int:
    return run("tests.lab.history", arguments, storm, __doc__, seconds=180.0, kills=10)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
