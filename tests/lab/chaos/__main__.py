"""`make chaos`: harm a real daemon in all ways at once while clients ask, and count what becomes of their requests.

    python -m tests.lab.chaos [--seconds 300] [--seed N] [--upgrade-every 20]

Every 200 ms a worker is killed; models are replaced, scaled and set; clients leave in the middle; hostile ones send
what is oversized, cut or malformed, on every protocol; the daemon is replaced. Nothing may be unanswered, answered
twice, wrong, or run more often than promised (verdict.py says what may be); the daemon's logs have no traceback; memory
and descriptors stay as they were after the warm-up; nothing is left in the end. A seed repeats what clients send and
what is done; when it happens is the machine's.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.e2e.served import Served, free_address
from tests.lab.chaos.callers import CALLERS, MODELS, Callers
from tests.lab.chaos.faults import WORKERS, Faults, ask_control, described, write_generation
from tests.lab.chaos.footprint import Footprint, growth, left_behind, measure, wait_for
from tests.lab.chaos.hostile import PATHS, PREY, Hostile
from tests.lab.chaos.ledger import Ledger
from tests.lab.chaos.verdict import Kind

WARM_UP = 0.2  # of the time
SHOWN = 20  # sentences of a kind
AGAIN = 5  # times that a caller over gRPC may be told to ask again, every 0.1 s, while a server is replaced


class Chaos:
    """A daemon in a folder of its own, and everything that is done to it."""

    def __init__(self, folder: Path, seed: int, upgrade_every: float) -> None:
        self.ledger = Ledger()
        self.done: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self.calm: list[Footprint] = []
        self.served = Served(folder)
        self._seed = seed
        self._upgrade_every = upgrade_every
        self._grpc = free_address()
        self._journal = folder / "journal"
        self._journal.touch()
        self.served.environment |= {"UPGRADES_MARK": str(folder), "CHAOS_JOURNAL": str(self._journal)}

    def start(self) -> None:
        self.served.start("--grpc-address", self._grpc)
        self.served.register("echo", name=PREY)
        for model in MODELS:
            self.served.tsctl("register", write_generation(self.served, model, 1))
            self.ledger.generations[model] = 1

    def storm(self, seconds: float) -> None:
        """Let everybody loose for a while, then look what is there when it is calm."""
        address = self.served.url.removeprefix("http://")
        seed = f"{self._seed} storm {len(self.calm)}"
        faults = Faults(self.served, self.ledger, seed, self._upgrade_every)
        hostile = Hostile(address, self._grpc, self.ledger, seed)
        with Callers(address, self._grpc, self.ledger, seed), faults, hostile:
            time.sleep(seconds)
        self.done += faults.done + hostile.done
        for model, workers in WORKERS.items():
            path = f"/models/{model}?min_worker={workers}&max_worker={workers}"
            assert ask_control(self.served, "PUT", path).status == 202
            wait_for(
                lambda model=model, workers=workers: len(described(self.served, model)["workers"]) == workers,  # type: ignore[misc]
                lambda model=model: f"{model} has its workers: {described(self.served, model)}",  # type: ignore[misc]
            )
        self.calm.append(measure(self.served, sum(WORKERS.values()) + 1))
        if len(self.calm) > 1:
            self.ledger.broken += growth(self.calm[0], self.calm[-1])

    def end(self) -> None:
        """Stop the daemon, and look what is left."""
        self.served.stop()
        self.ledger.broken += [f"left behind: {each}" for each in left_behind(self.served)]
        again = sum(kinds[Kind.AGAIN] for kinds in self.ledger.kinds.values())
        if again > (most := AGAIN * CALLERS * (self.done["daemon upgraded"] + self.done[PATHS])):
            self.ledger.broken.append(f"{again} calls were cut off, and at most {most} can have been")
        self.ledger.broken += self.served.new_tracebacks()
        silent = [model for model in MODELS if not self.ledger.kinds[model][Kind.RIGHT]]
        self.ledger.broken += [f"{model} has answered nothing" for model in silent]
        self.runs = self.ledger.check_runs(self._journal)

    def __str__(self) -> str:
        ledger = self.ledger
        lines = [f"{'requests':12}{sum(kinds.total() for kinds in ledger.kinds.values()):8}"]
        for model, kinds in ledger.kinds.items():
            lines += [f"{model:12}{count:8} {kind}" for kind, count in sorted(kinds.items())]
        lines += [f"{'run':12}{count:8} {times}" for times, count in sorted(self.runs.items())]
        lines += [f"{'done':12}{count:8} {what}" for what, count in sorted(self.done.items())]
        lines += [f"{'calm':12}{footprint}" for footprint in self.calm]
        lines.append(f"{'unanswered':12}{len(ledger.unanswered):8}")
        lines.append(f"{'broken':12}{len(ledger.broken):8}")
        return "\n".join((*lines, *ledger.unanswered[:SHOWN], *ledger.broken[:SHOWN]))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.chaos")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--upgrade-every", type=float, default=20.0, help="seconds")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        chaos = Chaos(Path(folder), seed, min(given.upgrade_every, given.seconds / 5))
        try:
            chaos.start()
            chaos.storm(WARM_UP * given.seconds)
            chaos.storm((1 - WARM_UP) * given.seconds)
        finally:
            chaos.end()
            print(chaos)
        bad = bool(chaos.ledger.unanswered or chaos.ledger.broken)
        if bad:
            print((chaos.served.folder / "state/logs/daemon.log").read_text()[-4000:])
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
