"""`python -m tests.lab.guard [--baseline COMMIT] [--pairs 9]`: whether a request costs more than with the last release.

The processor time of the daemon's process, user and system, for a request of the constant answer; both wheels compiled,
on the same machine in one run, in turns; the median of the pairs' ratios. Above the limit as many
pairs are measured again, up to three times, since another program may have disturbed most of them.

Exit codes: 0 at most 1.05 times as much, 1 more, 2 nothing to compare with, or no build or measurement.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.environments import Missing
from tests.lab.benchmarks.measuring.wrk import NoWrk
from tests.lab.benchmarks.peers.peer import DidNotStart
from tests.lab.guard import baseline, measure, wheels
from tests.lab.guard.verdict import LIMIT, LOOKS, PAIRS, settle


def compare(theirs: Path, ours: Path, pairs: int) -> int:
    """Measure and judge; return the exit code.

    Args:
        theirs, ours: the interpreters.
    """
    for python in (theirs, ours):
        if not measure.is_compiled(python):
            raise Missing(f"{python} does not run compiled modules")
    print(f"{pairs} pairs of {measure.SECONDS:g} s, {measure.CONNECTIONS} connections: baseline, this tree, ratio")

    def shown() -> Iterator[tuple[float, float]]:
        for before, now in measure.in_turns(theirs, ours, pairs * LOOKS):
            print(f"{before * 1e6:8.2f} µs {now * 1e6:8.2f} µs {now / before:7.3f}", flush=True)
            yield before, now

    found = settle(shown(), pairs)
    print(f"a request costs {found.ratio:.3f} times the baseline's; at most {LIMIT} is allowed")
    return 0 if found.good else 1


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.guard", description="Compare the cost of a request.")
    parser.add_argument("--baseline", default="", metavar="COMMIT", help="compare with this one")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"how often both are measured ({PAIRS})")
    given = parser.parse_args(arguments)
    try:
        named = baseline.choose(given.baseline, baseline.last_release(), baseline.RECORDED.read_text())
        commit = baseline.resolve(named)
        print(f"the baseline is {named}, {commit}", flush=True)
        return compare(wheels.of_commit(commit), wheels.of_this_tree(), given.pairs)
    except (baseline.NoBaseline, Missing, NoWrk, DidNotStart, measure.WrongAnswers) as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
