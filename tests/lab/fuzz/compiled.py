"""Sends the same inputs to the sources and to the modules that a wheel compiles, and compares what they come to.

    python -m tests.lab.fuzz.compiled [--seconds 30] [--seed N] [--folder .fuzz] [TARGET …]

Atheris sees only what is interpreted, and a wheel is not: the examples, what once broke a claim, the corpus that a
campaign has found on the sources (in FOLDER), and then random mutations of all these. The exit code is 1 if an outcome
differs, or a claim is broken in either; the input is then in FOLDER/TARGET.
"""

import argparse
import base64
import contextlib
import hashlib
import math
import os
import random
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from tests.compiled import TREE, compiled
from tests.lab.fuzz.damage import MOST, mutations
from tests.lab.fuzz.outcomes import BROKEN
from tests.lab.fuzz.targets import COMPILED, Target, target
from tests.places import ROOT

CRASHES = Path(__file__).parent / "crashes"
_AHEAD = 16  # inputs that are sent before their outcomes are read
_PATIENCE = 60.0  # seconds for those
_GONE = f"- {BROKEN}"  # begins what is said for an interpreter that says nothing
_FOUND = 5  # after so many differences a target is left


class Side:
    """One interpreter that answers with outcomes."""

    def __init__(self, command: Sequence[str | Path], folder: Path) -> None:
        env = os.environ | {"PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._read = b""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def send(self, name: str, inputs: Sequence[bytes]) -> None:
        for data in inputs:
            self._input.write(f"{name} {base64.b64encode(data).decode() or '='}\n".encode())
        self._input.flush()

    def outcomes(self, count: int) -> list[str]:
        """Read so many outcomes; of inputs that ended or stopped the interpreter, it is that."""
        ends = time.monotonic() + _PATIENCE
        while self._read.count(b"\n") < count:
            if not self._selector.select(max(0.0, ends - time.monotonic())):
                return [*self._lines(), *[f"{_GONE}no outcome in {_PATIENCE:g} s"] * count][:count]
            more = os.read(self._output.fileno(), 65536)
            if not more:
                return [*self._lines(), *[f"{_GONE}the interpreter ended"] * count][:count]
            self._read += more
        return self._lines()

    def _lines(self) -> list[str]:
        *lines, self._read = self._read.split(b"\n")
        return [line.decode() for line in lines]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        self._selector.close()
        self._output.close()
        with contextlib.suppress(BrokenPipeError):
            self._input.close()


def known_inputs(name: str, chosen: Target, folder: Path) -> list[bytes]:
    """Return the examples, what once broke a claim, and what campaigns have found."""
    files = [path for place in (CRASHES / name, folder / name / "corpus") for path in sorted(place.glob("*"))]
    return [*chosen.examples, *(path.read_bytes()[:MOST] for path in files)]


def differences(
    name: str, sides: Sequence[Side], inputs: Iterator[bytes], seconds: float
) -> Iterator[tuple[bytes, list[str]]]:
    """Send inputs until there are no more or the time is over; yield those whose outcomes differ or are broken."""
    ends = time.monotonic() + seconds
    sent = 0
    while time.monotonic() < ends and (batch := [data for data, _ in zip(inputs, range(_AHEAD), strict=False)]):
        for side in sides:
            side.send(name, batch)
        answers = [side.outcomes(len(batch)) for side in sides]
        for data, *outcomes in zip(batch, *answers, strict=True):
            if len(set(outcomes)) > 1 or any(f" {BROKEN}" in each[:24] for each in outcomes):
                yield data, outcomes
        sent += len(batch)
    print(f"{name}: {sent:,} {'known inputs' if math.isinf(seconds) else 'mutations'}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.fuzz.compiled")
    parser.add_argument("--seconds", type=float, default=30.0, help="for mutations, of each target")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--folder", type=Path, default=Path(".fuzz"))
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(COMPILED))
    given = parser.parse_args()
    if unknown := set(given.targets) - set(COMPILED):
        parser.error(f"no such target, or nothing of it is compiled: {', '.join(sorted(unknown))}")
    program = ("-m", "tests.lab.fuzz.outcomes")
    python = compiled()
    print(f"--seed {given.seed}", flush=True)
    found = 0
    for name in given.targets or COMPILED:
        sides = [Side((sys.executable, *program), ROOT), Side((python, *program), TREE)]
        try:
            found += compare(name, sides, given.seconds, given.seed, given.folder)
        finally:
            for side in sides:
                side.stop()
    print(f"{found} differ" if found else "0 differ, and every claim holds")
    return 1 if found else 0


def compare(name: str, sides: Sequence[Side], seconds: float, seed: int, folder: Path) -> int:
    """Compare two interpreters on one target; print and keep what differs, and return how many inputs that were."""
    chosen = target(name)
    known = known_inputs(name, chosen, folder)
    words, chance = list(chosen.words), random.Random(f"{seed} {name}")

    found = 0
    drawn = mutations(known, words, chance)
    for data, outcomes in chain(
        differences(name, sides, iter(known), math.inf), differences(name, sides, drawn, seconds)
    ):
        path = folder / name / f"differs-{hashlib.sha256(data).hexdigest()[:16]}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"{name}: {path}\n  the input: {data!r}\n  " + "\n  ".join(outcomes), flush=True)
        found += 1
        if found == _FOUND or any(each.startswith(_GONE) for each in outcomes):
            break  # an interpreter that has ended or hangs answers nothing more
    return found


if __name__ == "__main__":
    sys.exit(main())
