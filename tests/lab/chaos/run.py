"""A run of chaos from a command line: its options, what is told of the ledger, and the exit code."""

import argparse
import random
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.e2e.served import Served
from tests.lab.chaos.ledger import Ledger

SHOWN = 20  # sentences of each kind
LOG_END = 4000  # characters of the daemon's log


class Plan(NamedTuple):
    """What a run is asked for; times in seconds."""

    seed: int
    seconds: float
    upgrade_every: float


Storm = Callable[[Path, Plan], tuple[Served, Ledger, Iterable[str]]]


def run(program: str, arguments: Sequence[str], storm: Storm, *, seconds: float, upgrade_every: float) -> int:
    """Run a storm in a folder of its own; return 1 if anything was unanswered or broken.

    Args:
        storm: returns the daemon, which has been stopped, what became of the requests, and lines that are told first.
        seconds: the usual length, as `upgrade_every`, which is at most a fifth of the length.
    """
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--upgrade-every", type=float, default=upgrade_every, help="seconds")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        plan = Plan(seed, given.seconds, min(given.upgrade_every, given.seconds / 5))
        served, ledger, lines = storm(Path(folder), plan)
        print("\n".join(lines))
        print(f"{len(ledger.unanswered):8} unanswered\n{len(ledger.broken):8} broken")
        print("\n".join((*ledger.unanswered[:SHOWN], *ledger.broken[:SHOWN])))
        bad = bool(ledger.unanswered or ledger.broken)
        if bad:
            print((served.folder / "state/logs/daemon.log").read_text()[-LOG_END:])
    return int(bad)
