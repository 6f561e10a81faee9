"""`python -m tests.lab history`: kill daemons for some minutes, and check what each serves afterwards.

    python -m tests.lab.history [--seconds 180] [--kills 10] [--seed N]

`--kills` is how often the daemon of one seed is killed; `--seed` repeats one seed's random sequence (what the
clients send; how they meet is the machine's).
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from tests.lab.history.run import Run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.history")
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int)
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    kills = operations = 0
    while time.monotonic() < end:
        seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
        print(f"seed {seed}: ", end="", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            run = Run(Path(folder), seed)
            try:
                for _ in range(given.kills):
                    run.round()
                    kills += 1
            finally:
                run.end()
            operations += run.operations
            print(f"{given.kills} kills, {run.operations} commands, all of it explained")
        if given.seed is not None:
            break
    print(f"{kills} kills and {operations} commands: nothing was lost, and nothing came back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
