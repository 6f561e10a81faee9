"""`python -m tests.lab.mutants [--each 40] [--seed 1] [MODULE …]`: which changed lines the tests would not notice.

With `--tests` any other modules, by their whole names, are judged by those tests; the first are run first.

Mutants are drawn from all of a module's; those that are known to change nothing are left out afterwards, and counted.
So finding that one is equivalent changes neither which others are tried nor what an earlier table compares. The share
is of those that were tried.

Exit codes: 0 at least nine of ten of each module are killed, 1 fewer.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.lab.mutants.changes import Mutant, mutants
from tests.lab.mutants.judging import PROFILE, Judging, register_profile
from tests.lab.mutants.modules import EQUIVALENT, MODULES

ENOUGH = 0.9
PYTEST = f"-q -s -p no:cacheprovider -p no:xdist --hypothesis-seed=0 --hypothesis-profile={PROFILE}"
IMPORTED_BEFORE = "ignore::pytest.PytestAssertRewriteWarning"  # hypothesis, for its profile


def drawn(module: str, each: int, seed: int) -> list[Mutant]:
    """Return a sample of the module's mutants, in the order of its lines."""
    found = mutants(Path(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8"))
    return sorted(random.Random(seed).sample(found, min(each, len(found))), key=lambda mutant: mutant.line)


def judge(judging: Judging, module: str, own: str, each: int, seed: int, at_once: int) -> float:
    """Print a module's survivors, each when it is known, and its row; return the share of those tried that died."""
    began = time.monotonic()
    chosen, known = drawn(module, each, seed), EQUIVALENT.get(module, {})
    tried = [mutant for mutant in chosen if mutant.text not in known]
    killed, same = len(tried), len(chosen) - len(tried)
    for mutant in judging.survivors(module, tried, own, at_once):
        print(f"    line {mutant.line}: {mutant.text}", flush=True)
        killed -= 1
    share = killed / len(tried)
    print(f"{module:32} {len(chosen):5} {same:10} {killed:7} {share:7.1%} {time.monotonic() - began:8.0f}", flush=True)
    return share


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.mutants", description="Change lines; run their tests.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="a part of a module's name; all without any")
    parser.add_argument("--tests", nargs="+", help="of MODULEs that are not in the table")
    parser.add_argument("--each", type=int, default=40, help="mutants drawn of a module (40)")
    parser.add_argument("--seed", type=int, default=1, help="draws the mutants (1)")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--at-once", type=int, default=cores, help="how many run at the same time; a core each")
    given = parser.parse_args(arguments)
    table = dict.fromkeys(given.modules, tuple(given.tests)) if given.tests else MODULES
    chosen = [name for name in table if not given.modules or any(part in name for part in given.modules)]
    if not chosen:
        parser.error("name modules: a part of one of the table, or with --tests any by its whole name")
    shares: list[float] = []

    def judge_all(judging: Judging) -> None:
        print(f"{'module':32} {'drawn':>5} {'equivalent':>10} {'killed':>7} {'share':>7} {'seconds':>8}", flush=True)
        how = given.each, given.seed, given.at_once
        shares.extend(judge(judging, module, table[module][0], *how) for module in chosen)

    register_profile()
    tests = dict.fromkeys(test for module in chosen for test in table[module])
    code = pytest.main([*PYTEST.split(), "-W", IMPORTED_BEFORE, *tests], plugins=[Judging(chosen, judge_all)])
    return int(code) or int(min(shares) < ENOUGH)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
