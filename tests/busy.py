"""Runs the tests on a machine that has more to do: `python -m tests.busy [OPTION …] [ARGUMENT OF PYTEST …]`.

Beside processes that only compute and one that reads the disk, and in random order: a test that counts on how fast
another process is, or on another test, fails here first.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence

# Ends when this process has ended, however that came.
LOOP = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(1_000_000): pass"
# Reads what the tests read, the installed packages, and has the kernel forget them: they come from the disk each time.
READER = """
import contextlib, os, sys
while True:
    for folder, _, names in os.walk(sys.argv[2]):
        for name in names:
            if os.getppid() != int(sys.argv[1]):
                sys.exit()
            with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while file.read(1 << 20):
                    pass
"""
SPREAD = ("-n", "2", "--dist", "worksteal", "--durations", "20")


@contextlib.contextmanager
def loops(count: int) -> Iterator[list[int]]:
    """Keep so many processes computing meanwhile, and one reading; yield their ids."""
    command, parent = [sys.executable, "-c"], str(os.getpid())
    running = [subprocess.Popen([*command, LOOP, parent]) for _ in range(count)]
    running.append(subprocess.Popen([*command, READER, parent, sysconfig.get_path("platlib")]))
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
        print(f"beside {options.loops} busy loops and a reader of the disk, in the order of seed {seed}", flush=True)
        with loops(options.loops):
            done = subprocess.run([sys.executable, "-m", "pytest", *SPREAD, "--shuffle", str(seed), *further])
        if done.returncode:
            failed.append(seed)
    print(f"{options.times} runs, {len(failed)} failed", *(f"(--seed {seed})" for seed in failed))
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
