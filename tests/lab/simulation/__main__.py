"""`python -m tests.lab.simulation`: run the daemon under faults drawn from seeds.

--seeds N --first S   the seeds S … S + N - 1 (1000 from 1), on --jobs processes (one for each core); those up to
                      100 000 run whole batches, later ones all modes (modes.py)
--seed N --story      a single seed, with its story
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

from tests.lab.simulation.run import explain, prepare, run

CHUNK = 250  # seeds per report of a process
PROGRESS = 10_000  # seeds between two progress lines


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.simulation", description="Run the daemon under faults.")
    parser.add_argument("--seeds", type=int, default=1000, metavar="N", help="how many (1000)")
    parser.add_argument("--first", type=int, default=1, metavar="S", help="the first of them (1)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, metavar="K", help="processes (one for each core)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="only this one")
    parser.add_argument("--story", action="store_true", help="print each step")
    parser.add_argument("--failures", type=int, default=1, metavar="N", help="stop after so many seeds that fail (1)")
    options = parser.parse_args(arguments)
    prepare()
    if options.seed is not None:
        failure = run(options.seed)
        if options.story or failure is not None:
            print(explain(options.seed))
        return 1 if failure is not None else 0
    began, done, failed = time.monotonic(), 0, 0
    for seeds, bad in _run_all(range(options.first, options.first + options.seeds), max(1, options.jobs)):
        done += seeds
        if not done % PROGRESS:
            print(f"{done} seeds, {failed} failed", file=sys.stderr, flush=True)
        for seed in bad:
            failed += 1
            print(explain(seed), end="\n\n", flush=True)
        if failed >= options.failures:
            break
    seconds = time.monotonic() - began
    each = f"{seconds / max(1, done) * 1000 * max(1, options.jobs):.1f} ms each"
    print(f"{done} seeds from {options.first} in {seconds:.0f} s, {each}: {failed} failed")
    return 1 if failed else 0


def _run_all(seeds: range, jobs: int) -> Iterator[tuple[int, list[int]]]:
    """Run seeds; yield the number of seeds and the failed seeds of each chunk."""
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    if jobs == 1:
        yield from map(_run_chunk, chunks)
        return
    with ProcessPoolExecutor(jobs, initializer=prepare) as processes:
        try:
            yield from processes.map(_run_chunk, chunks)
        finally:
            processes.shutdown(cancel_futures=True)


def _run_chunk(seeds: range) -> tuple[int, list[int]]:
    return len(seeds), [seed for seed in seeds if run(seed) is not None]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
