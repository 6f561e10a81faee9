"""A run against a real daemon from a command line: its options, what is told of the ledger, and the exit code."""

import argparse
import random
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.e2e.served import Served
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.peer import PATIENCE

SHOWN = 20  # sentences of each kind
LOG_END = 4000  # characters of the daemon's log

Storm = Callable[[Served, argparse.Namespace, Ledger], None]


def run(program: str, arguments: Sequence[str], storm: Storm, about: str | None, **options: float) -> int:
    """Run a storm in a folder of its own, tell of its ledger, and return 1 if anything was unanswered or broken.

    Args:
        storm: starts a daemon, harms it, stops it, and enters what became of it into the ledger.
        about: the text of a module, whose first line is the program's description.
        options: name → usual value. `seed` is one of all programs.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=(about or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    for name, usual in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(usual), default=usual, help=f"({usual:g})")
    given = parser.parse_args(arguments)
    print(f"seed {given.seed}", flush=True)
    ledger = Ledger()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        served = Served(Path(folder))
        served.patience = PATIENCE
        try:
            storm(served, given, ledger)
        finally:
            print(ledger, flush=True)
        for sentences in (ledger.unanswered, ledger.broken):
            print("\n".join(sentences[:SHOWN]))
        if ledger.bad:
            log = served.folder / "state/logs/daemon.log"
            print(log.read_text()[-LOG_END:] if log.exists() else "")
    return int(ledger.bad)
