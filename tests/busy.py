"""Runs the tests on a machine that has more to do: `python -m tests.busy [OPTION …] [ARGUMENT OF PYTEST …]`.

Beside processes that only compute, and in random order: a test that counts on how fast another process is, or on
another test, fails here first.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence

# Ends when this process has ended, however that came.
LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(1_000_000): pass"
SPREAD = ("-n", "2", "--dist", "worksteal", "--durations", "20")


@contextlib.contextmanager
def loops(count: int) -> Iterator[list[int]]:
    """Keep so many processes computing meanwhile; yield their ids."""
    command = [sys.executable, "-c", LOOP, str(os.getpid())]
    running = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield [process.pid for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()


def main(arguments: Sequence[str]) -> int:
    """Run the tests; return how many runs failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.busy", description="Run the tests on a busy machine.")
    parser.add_argument("--times", type=int, default=3, help="Runs, each in another order; 3 by default.")
    parser.add_argument("--loops", type=int, default=2, help="Processes that compute beside the tests; 2 by default.")
    parser.add_argument("--seed", type=int, help="Of the first order; the next one has the next seed.")
    options, further = parser.parse_known_args(arguments)
    first = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    failed = []
    for seed in range(first, first + options.times):
        print(f"beside {options.loops} busy loops, in the order of seed {seed}", flush=True)
        with loops(options.loops):
            done = subprocess.run([sys.executable, "-m", "pytest", *SPREAD, "--shuffle", str(seed), *further])
        if done.returncode:
            failed.append(seed)
    print(f"{options.times} runs, {len(failed)} failed", *(f"(--seed {seed})" for seed in failed))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
