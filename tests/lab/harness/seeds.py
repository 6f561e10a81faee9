"""A scenario on a virtual clock from a command line: many seeds on all cores, and the story of the first that fails.

--seeds N --first S   the seeds S … S + N - 1, on --jobs processes (one for each core)
--seed N              a single seed, with its story
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

CHUNK = 250  # seeds of a process at a time
PROGRESS = 10_000  # seeds between two progress lines

Run = Callable[[int], object]  # returns the first broken invariant, or None


def main(program: str, arguments: Sequence[str], run: Run, explain: Callable[[int], str], *, seeds: int) -> int:
    """Run seeds; return 1 if an invariant is broken.

    Args:
        run, explain: functions of a module, for other processes; `explain` returns the story of a seed.
        seeds: the usual number.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}")
    parser.add_argument("--seeds", type=int, default=seeds, metavar="N", help=f"how many ({seeds})")
    parser.add_argument("--first", type=int, default=1, metavar="S", help="the first of them (1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="K", help="(one for each core)")
    parser.add_argument("--seed", type=int, metavar="N", help="only this one, with its story")
    options = parser.parse_args(arguments)
    if options.seed is not None:
        print(explain(options.seed))
        return 1 if run(options.seed) is not None else 0
    began, done, broken, jobs = time.monotonic(), 0, None, max(1, options.jobs)
    chosen = range(options.first, options.first + options.seeds)
    for done, (seed, broken) in enumerate(zip(chosen, _run_all(chosen, jobs, run), strict=True), start=1):
        if not done % PROGRESS:
            print(f"{done} seeds", file=sys.stderr, flush=True)
        if broken is not None:
            print(explain(seed), end="\n\n", flush=True)
            break
    seconds = time.monotonic() - began
    each = f"{seconds / max(1, done) * 1000 * jobs:.1f} ms each"
    failed = int(broken is not None)
    print(f"{done} seeds from {options.first} in {seconds:.0f} s, {each}: {failed} failed")
    return failed


def _run_all(seeds: range, jobs: int, run: Run) -> Iterator[object]:
    """Run seeds; yield what each has broken."""
    if jobs == 1:
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(jobs) as processes:
        try:
            yield from processes.map(run, seeds, chunksize=CHUNK)
        finally:
            processes.shutdown(cancel_futures=True)
