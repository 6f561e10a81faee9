"""Models that come and go, while workers are killed, models changed and the daemon replaced.

    python -m tests.lab chaos-residency [--seconds 600] [--seed N] [--upgrade-every 30]

Twelve models are loaded on demand, and the memory has room for about four; clients ask for some often and for others
seldom, and some leave. Meanwhile workers are killed, archives replaced, keep-alives and pins set, one model is unloaded
and loaded by an operator, and the daemon replaced. Nothing may be unanswered, wrong, or run more often than promised.
"""

import random
import sys
import time
from argparse import Namespace

from tests.e2e.served import Served
from tests.lab.harness.clients import Clients, Habit, few_words
from tests.lab.harness.daemon import logs, mark, pack_accounts
from tests.lab.harness.faults import Faults
from tests.lab.harness.footprint import left_behind, stop_alone
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.storm import run
from tests.lab.harness.verdict import Kind, Rules

MODELS = [f"m{index:02}" for index in range(12)]
HELD = "held"  # an operator unloads it, and loads it
BUDGET = "56MiB"  # a worker takes about 12 MiB
CLIENTS = 14
RULES = {name: Rules() for name in MODELS} | {HELD: Rules(held=True)}
OFTEN = [1 / (1 + place) for place in range(len(RULES))]  # how often each is asked for
SETTINGS = (
    "minWorkers: 1\nmaxWorkers: 1\nbatchSize: 4\nmaxBatchDelay: 2\nretry: true\nloading: on_demand\nkeepAlive: 2s\n"
)
REASONS = ("a request came", "unloaded: idle", "unloaded by an operator")
RARE = ("unloaded: others needed the memory",)  # half of the runs of 30 s have none
LONG = 60.0  # seconds
HABIT = Habit(
    lambda chance: chance.choices(list(RULES), OFTEN)[0], words=few_words, leaves=0.05,
    pause=lambda chance: chance.uniform(0.0, 0.5),
)  # fmt: skip


class ComingAndGoing(Faults):
    """Faults that concern what is in memory."""

    def _change(self, chance: random.Random) -> None:
        pinned = ""
        while not self.over.wait(chance.uniform(0.2, 1.5)):
            model = chance.choice(MODELS)
            match chance.choice(["replace", "keep", "keep", "pin", "load", "hold", "release"]):
                case "replace":
                    url = pack_accounts(self._served, model, self.ledger.generations[model] + 1, SETTINGS)
                    self._replace_model(model, url)
                case "keep":
                    path = f"/models/{model}?keep_alive={chance.choice(['0', '1s', '5s', 'forever'])}"
                    self._command("kept alive", model, "PATCH", path)
                case "pin":  # one at a time: what is pinned is no room for others
                    if not pinned or self._command("unpinned", pinned, "PATCH", f"/models/{pinned}?pinned=false"):
                        done = self._command("pinned", model, "PATCH", f"/models/{model}?pinned=true")
                        pinned = model if done else ""
                case "load":
                    self._command("loaded", model, "POST", f"/models/{model}/1.0/load?synchronous=false")
                case "hold":
                    self._command("held", HELD, "POST", f"/models/{HELD}/1.0/unload")
                case "release":
                    self._command("released", HELD, "POST", f"/models/{HELD}/1.0/load?synchronous=false")


def storm(served: Served, given: Namespace, ledger: Ledger) -> None:
    """Serve the models, let everybody loose for a while, and stop."""
    journal, seed = mark(served), str(given.seed)
    served.start("--models-memory", BUDGET)
    try:
        for model in RULES:
            served.tsctl("register", pack_accounts(served, model, 1, SETTINGS))
            ledger.generations[model] = 1
        clients = Clients(served.url.removeprefix("http://"), ledger, seed, RULES, [HABIT] * CLIENTS)
        with clients, ComingAndGoing(served, ledger, seed, given.upgrade_every):
            time.sleep(given.seconds)
    finally:
        stop_alone(served)
    ledger.broken += [f"left behind: {each}" for each in left_behind(served)]
    ledger.broken += [f"{model} has answered nothing" for model in MODELS if not ledger.kinds[model][Kind.RIGHT]]
    log = logs(served)
    for reason in (*REASONS, *RARE):
        ledger.count(reason, log.count(reason))
    ledger.expect(*REASONS, *(RARE if given.seconds >= LONG else ()))
    ledger.check_runs(journal)


def main(arguments: list[str]) -> int:
    return run("tests.lab.chaos.residency", arguments, storm, __doc__, seconds=600.0, upgrade_every=30.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
