"""`python -m tests.lab.mutants [--each 40] [--seed 1] [MODULE …]`: which changed lines the tests would not notice.

Exit codes: 0 at least nine of ten of each module are killed, 1 fewer.
"""

import argparse
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.lab.mutants.changes import Mutant, mutants
from tests.lab.mutants.judging import prepare, survivors
from tests.lab.mutants.modules import EQUIVALENT, MODULES

ENOUGH = 0.9


def drawn(module: str, each: int, seed: int) -> list[Mutant]:
    """Return the mutants to try; equivalent ones are not among them."""
    source = Path(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    known = EQUIVALENT.get(module, {})
    found = [mutant for mutant in mutants(source) if mutant.text not in known]
    return sorted(random.Random(seed).sample(found, min(each, len(found))), key=lambda mutant: mutant.line)


def passes_unchanged(module: str, tests: Sequence[str]) -> bool:
    source = Path(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    return bool(survivors(module, [Mutant(0, "", "", source)], tests, 1))


def judge(module: str, each: int, seed: int, at_once: int) -> float:
    """Print a module's row and its survivors; return the share of mutants that were killed."""
    chosen = drawn(module, each, seed)
    tests = [name for name in MODULES[module] if Path(name).exists()]
    if not passes_unchanged(module, tests):
        raise SystemExit(f"{module}: its tests fail without any change: {' '.join(tests)}")
    alive = survivors(module, chosen, tests, at_once)
    share = 1 - len(alive) / len(chosen)
    print(f"{module:34} {len(chosen):4} {len(chosen) - len(alive):7} {share:7.1%}", flush=True)
    for mutant in alive:
        print(f"    line {mutant.line}: {' '.join(mutant.text.split())[:160]}", flush=True)
    return share


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.mutants", description="Change lines; run their tests.")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="a part of a module's name; all without any")
    parser.add_argument("--each", type=int, default=40, help="mutants of a module (40)")
    parser.add_argument("--seed", type=int, default=1, help="draws the mutants (1)")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--at-once", type=int, default=cores, help="how many run at the same time; a core each")
    given = parser.parse_args(arguments)
    prepare()
    chosen = [name for name in MODULES if not given.modules or any(part in name for part in given.modules)]
    print(f"{'module':34} {'made':>4} {'killed':>7} {'share':>7}")
    shares = [judge(module, given.each, given.seed, given.at_once) for module in chosen]
    return 0 if all(share >= ENOUGH for share in shares) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
