"""`python -m tests.lab chaos-residency`: models that come and go, while all that may fail does.

    python -m tests.lab.chaos.residency [--seconds 600] [--seed N] [--upgrade-every 30]

Twelve models are loaded on demand, and the memory has room for about four; clients ask for some often and for others
seldom, and some leave. Meanwhile workers are killed, archives replaced, keep-alives and pins set, one model is unloaded
and loaded by an operator, and the daemon replaced. Nothing may be unanswered, wrong, or run more often than promised.
"""

import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from daemon.marfile import Packing, write_archive
from tests.e2e.served import ARCHIVES, Served
from tests.lab.chaos.crowd import Crowd
from tests.lab.chaos.faults import Faults
from tests.lab.chaos.footprint import left_behind, stop_alone
from tests.lab.chaos.ledger import Ledger
from tests.lab.chaos.peer import Peer, Unanswered
from tests.lab.chaos.run import Plan, run
from tests.lab.chaos.verdict import Broken, Kind, Rules, judge

MODELS = [f"m{index:02}" for index in range(12)]
HELD = "held"  # an operator unloads it, and loads it
BUDGET = "56MiB"  # a worker takes about 12 MiB
CLIENTS = 14
RULES = {name: Rules() for name in MODELS} | {HELD: Rules(held=True)}
SETTINGS = (
    "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 4\nmaxBatchDelay: 2\nretry: true\nloading: on_demand\nkeepAlive: 2s\n"
)
REASONS = ("a request came", "unloaded: idle", "unloaded: others needed the memory", "unloaded by an operator")


def pack(served: Served, model: str, generation: int) -> str:
    """Put an archive into the store that tells this number; give its file name."""
    folder = served.folder / "packing"
    folder.mkdir(exist_ok=True)
    (folder / "generation.txt").write_text(str(generation))
    (folder / "model-config.yaml").write_text(SETTINGS)
    packing = Packing(
        model_name=model,
        version="1.0",
        handler=str(ARCHIVES / "accounts.py"),
        extra_files=str(folder / "generation.txt"),
        config_file=folder / "model-config.yaml",
    )
    return write_archive(packing, served.store, force=True).name


class ComingAndGoing(Faults):
    """Faults that concern what is in memory."""

    def _change(self) -> None:
        chance = random.Random(f"{self._seed} changes")
        pinned = ""
        while not self._over.wait(chance.uniform(0.2, 1.5)):
            model = chance.choice(MODELS)
            match chance.choice(["replace", "keep", "keep", "pin", "load", "hold", "release"]):
                case "replace":
                    generation = self._ledger.generations[model] + 1
                    if self._command(
                        "replaced", model, "POST", f"/models?url={pack(self._served, model, generation)}&replace=true"
                    ):
                        self._ledger.generations[model] = generation
                case "keep":
                    path = f"/models/{model}?keep_alive={chance.choice(['0', '1s', '5s', 'forever'])}"
                    self._command("kept alive", model, "PATCH", path)
                case "pin":  # one at a time: what is pinned is no room for others
                    if not pinned or self._command("unpinned", pinned, "PATCH", f"/models/{pinned}?pinned=false"):
                        pinned = (
                            model if self._command("pinned", model, "PATCH", f"/models/{model}?pinned=true") else ""
                        )
                case "load":
                    self._command("loaded", model, "POST", f"/models/{model}/1.0/load?synchronous=false")
                case "hold":
                    self._command("held", HELD, "POST", f"/models/{HELD}/1.0/unload")
                case "release":
                    self._command("released", HELD, "POST", f"/models/{HELD}/1.0/load?synchronous=false")


class Strangers(Crowd):
    """Clients that ask for one model after the other, some often and some seldom."""

    def __init__(self, address: str, ledger: Ledger, seed: str) -> None:
        self._address = address
        self._ledger = ledger
        super().__init__()
        chances = [random.Random(f"{seed} client {index}") for index in range(CLIENTS)]
        self._threads = [threading.Thread(target=self._guarded, args=(chance,)) for chance in chances]

    def _guarded(self, chance: random.Random) -> None:
        try:
            peer: Peer | None = None
            while not self._over.wait(chance.uniform(0.0, 0.5)):
                names = [*MODELS, HELD]
                model = chance.choices(names, [1 / (1 + place) for place in range(len(names))])[0]
                peer = self._ask(model, chance, peer)
            if peer is not None:
                peer.close()
        except Exception as error:  # noqa: BLE001 - a thread's bug would go unseen
            self._ledger.broken.append(f"a client broke: {error!r}")

    def _ask(self, model: str, chance: random.Random, peer: Peer | None) -> Peer | None:
        """Ask once; give the connection, if the next request may go there."""
        asked = self._ledger.make(model, RULES[model], chance.randbytes(chance.randrange(1, 2000)))
        leaves = chance.random() < 0.05
        try:
            peer = peer or Peer(self._address)
            peer.ask(model, asked)
            if leaves:
                self._over.wait(chance.uniform(0.0, 0.3))
                peer.close(abort=chance.random() < 0.5)
                self._ledger.ended(model, asked, Kind.LEFT)
                return None
            told = peer.answer()
            kind, pid = judge(asked, told, self._ledger.killed)
            self._ledger.ended(model, asked, kind, pid)
        except Unanswered as error:
            self._ledger.unanswered.append(f"{asked.id} to {model}: {error}")
        except Broken as error:
            self._ledger.broken.append(f"{model}: {error}")
        else:
            if told.whole and not told.closes:
                return peer
        if peer is not None:
            peer.close()
        return None


def storm(served: Served, seed: str, seconds: float, upgrade_every: float) -> tuple[Ledger, Counter[str]]:
    """Serve the models, let everybody loose for a while, and stop; return what became of the requests."""
    ledger = Ledger()
    journal = served.folder / "journal"
    journal.touch()
    served.environment |= {"UPGRADES_MARK": str(served.folder), "CHAOS_JOURNAL": str(journal)}
    served.start("--models-memory", BUDGET)
    try:
        for model in RULES:
            served.tsctl("register", pack(served, model, 1))
            ledger.generations[model] = 1
        faults = ComingAndGoing(served, ledger, seed, upgrade_every)
        with Strangers(served.url.removeprefix("http://"), ledger, seed), faults:
            time.sleep(seconds)
    finally:
        stop_alone(served)
    ledger.broken += [f"left behind: {each}" for each in left_behind(served)]
    ledger.broken += [f"{model} has answered nothing" for model in MODELS if not ledger.kinds[model][Kind.RIGHT]]
    log = "".join(path.read_text() for path in sorted((served.folder / "state" / "logs").glob("daemon.log*")))
    happened = faults.done + Counter({reason: log.count(reason) for reason in REASONS})
    ledger.broken += [f"it never happened: {reason}" for reason in REASONS if not happened[reason]]
    for times, count in ledger.check_runs(journal).items():
        happened[f"requests run {times}"] += count
    return ledger, happened


def _storm(folder: Path, plan: Plan) -> tuple[Served, Ledger, list[str]]:
    served = Served(folder)
    ledger, happened = storm(served, str(plan.seed), plan.seconds, plan.upgrade_every)
    total: Counter[Kind] = sum(ledger.kinds.values(), Counter())
    return served, ledger, [f"{count:8} {what}" for what, count in (*sorted(total.items()), *sorted(happened.items()))]


def main(arguments: list[str]) -> int:
    return run("python -m tests.lab.chaos.residency", arguments, _storm, seconds=600.0, upgrade_every=30.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
