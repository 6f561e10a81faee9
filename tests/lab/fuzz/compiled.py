"""The same inputs on the sources and on the modules that a wheel compiles, and whether they come to the same.

    python -m tests.lab.fuzz.compiled [--seconds 30] [--seed N] [--folder .fuzz] [TARGET …]

Atheris sees only what is interpreted, and a wheel is not: the examples, what once broke a claim, the corpus that a
campaign has found on the sources (in FOLDER), and then random mutations of all these. Each interpreter runs this module
as `outcomes TARGET FOLDER SEED SECONDS`. The exit code is 1 if an outcome differs, or a claim is broken in either; the
input is then in FOLDER/TARGET.
"""

import argparse
import hashlib
import os
import random
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from tests.compiled import TREE, compiled
from tests.lab.fuzz.damage import MOST, mutations
from tests.lab.fuzz.targets import COMPILED, CRASHES, target
from tests.places import ROOT

OUTCOMES = "outcomes"
BROKEN = "broken "  # begins the outcome of an input that breaks a claim
_SHOWN = 300  # characters
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
_PATIENCE = 300.0  # seconds beyond those of mutations: for what is known, and for one that hangs
_FOUND = 5  # after so many differences a target is left

Side = tuple[Sequence[str | Path], Path]  # the command of an interpreter that prints outcomes, and its folder


def known_inputs(name: str, folder: Path) -> list[bytes]:
    """Return the examples, what once broke a claim, and what campaigns have found."""
    files = [path for place in (CRASHES / name, folder / name / "corpus") for path in sorted(place.glob("*"))]
    return [*target(name).examples, *(path.read_bytes()[:MOST] for path in files)]


def mutated(name: str, known: Sequence[bytes], seed: int) -> Iterator[bytes]:
    """Yield mutations of what is known, without end: the same in each interpreter."""
    return mutations(known, list(target(name).words), random.Random(f"{seed} {name}"))


def outcome(name: str, data: bytes) -> str:
    """Return one line: what the target saw of these bytes, or how they broke a claim."""
    try:
        seen = repr(target(name).check(data))
    except Exception as error:  # noqa: BLE001 - that is an outcome, too
        last = traceback.extract_tb(error.__traceback__)[-1]
        seen = f"{BROKEN}{type(error).__name__} in {os.path.basename(last.filename)}: {error}"
    seen = _ADDRESS.sub("0x", seen)
    digest = hashlib.sha256(seen.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{digest} {ascii(seen[:_SHOWN])[1:-1]}"


def print_outcomes(name: str, folder: Path, seed: int, seconds: float) -> None:
    """Print the outcome of each input, in this interpreter: a line each."""
    told = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a reader prints is no outcome
    known = known_inputs(name, folder)
    for data in known:
        print(outcome(name, data), file=told)
    ends = time.monotonic() + seconds
    for data in mutated(name, known, seed):
        print(outcome(name, data), file=told)
        if time.monotonic() > ends:
            break
    told.close()
    target(name).close()


def outcomes(side: Side, seconds: float) -> list[str]:
    """Return the outcomes that an interpreter prints; where it ends or hangs, that is the next one."""
    command, folder = side
    env, why = os.environ | {"PYTHONHASHSEED": "0"}, ""
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=seconds + _PATIENCE
        )
        printed, why = done.stdout, f"the interpreter ended with exit code {done.returncode}" * bool(done.returncode)
    except subprocess.TimeoutExpired as hung:
        printed, why = hung.stdout or b"", f"no outcome within {hung.timeout:g} s"
    return [*printed.decode().splitlines(), *[f"- {BROKEN}{why}"] * bool(why)]


def compare(name: str, sides: Sequence[Side], seconds: float, seed: int, folder: Path) -> int:
    """Compare two interpreters on one target; print and keep what differs, and return how many inputs that were."""
    with ThreadPoolExecutor(len(sides)) as pool:
        seen = list(zip(*pool.map(lambda side: outcomes(side, seconds), sides), strict=False))
    known = known_inputs(name, folder)
    print(f"{name}: {len(seen):,} inputs, {len(known):,} of them known", flush=True)
    found = 0
    for data, told in zip(chain(known, mutated(name, known, seed)), seen, strict=False):
        if found < _FOUND and (len(set(told)) > 1 or any(f" {BROKEN}" in each[:24] for each in told)):
            path = folder / name / f"differs-{hashlib.sha256(data).hexdigest()[:16]}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"{name}: {path}\n  the input: {data!r}\n  " + "\n  ".join(told), flush=True)
            found += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.fuzz.compiled")
    parser.add_argument("--seconds", type=float, default=30.0, help="for mutations, of each target")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--folder", type=Path, default=Path(".fuzz"))
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(COMPILED))
    given = parser.parse_args()
    if unknown := set(given.targets) - set(COMPILED):
        parser.error(f"no such target, or nothing of it is compiled: {', '.join(sorted(unknown))}")
    python, folder, found = compiled(), given.folder.absolute(), 0
    print(f"--seed {given.seed}", flush=True)
    for name in given.targets or COMPILED:
        program = ["-m", "tests.lab.fuzz.compiled", OUTCOMES, name, str(folder), str(given.seed), str(given.seconds)]
        sides: list[Side] = [([sys.executable, *program], ROOT), ([python, *program], TREE)]
        found += compare(name, sides, given.seconds, given.seed, folder)
    print(f"{found} differ" if found else "0 differ, and every claim holds")
    return 1 if found else 0


if __name__ == "__main__":
    if sys.argv[1:2] == [OUTCOMES]:
        print_outcomes(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
    else:
        sys.exit(main())
