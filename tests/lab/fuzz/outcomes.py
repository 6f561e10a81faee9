"""The outcome of each input, in this interpreter, for compiled.py: a line with a digest of all that was seen, and its
beginning.

    python -m tests.lab.fuzz.outcomes TARGET FOLDER SEED SECONDS
"""

import hashlib
import os
import random
import re
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.lab.fuzz.damage import MOST, mutations
from tests.lab.fuzz.targets import target

BROKEN = "broken "  # begins the outcome of an input that breaks a claim
CRASHES = Path(__file__).parent / "crashes"
_SHOWN = 300  # characters
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


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


def main(name: str, folder: Path, seed: int, seconds: float) -> None:
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


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
