"""`python -m tests.lab.lives`: random lives of HTTP connections, drawn from seeds.

--seeds N --first S   the seeds S … S + N - 1 (10 000 from 1), on --jobs processes (one for each core)
--seed N              a single seed, with its story
"""

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.lab.lives.life import explain, run

CHUNK = 500  # seeds per report of a process


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.lives", description="Run random lives of connections.")
    parser.add_argument("--seeds", type=int, default=10_000, metavar="N", help="how many (10 000)")
    parser.add_argument("--first", type=int, default=1, metavar="S", help="the first of them (1)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="K", help="processes (one for each core)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="only this one, with its story")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        print(explain(options.seed))
        return 1 if run(options.seed) is not None else 0
    began, end = time.monotonic(), options.first + options.seeds
    chunks = [range(first, min(end, first + CHUNK)) for first in range(options.first, end, CHUNK)]
    if options.jobs == 1:
        failed = [seed for chunk in chunks for seed in broken(chunk)]
    else:
        with ProcessPoolExecutor(options.jobs) as processes:
            failed = [seed for found in processes.map(broken, chunks) for seed in found]
    for seed in failed[:3]:
        print(explain(seed), end="\n\n")
    seconds = time.monotonic() - began
    print(f"{options.seeds} seeds from {options.first} in {seconds:.0f} s: {len(failed)} failed {failed[:20]}")
    return 1 if failed else 0


def broken(seeds: range) -> list[int]:
    """Return the seeds whose lives break an invariant."""
    return [seed for seed in seeds if run(seed) is not None]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
