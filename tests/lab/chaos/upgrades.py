"""Many upgrades in a row under load: no request fails, no answer is wrong, nothing is left behind.

    python -m tests.lab upgrades [--count 50] [--grace 3]

Every tenth new daemon is killed while it loads, and that upgrade must fail and harm nobody.
"""

import json
import os
import random
import signal
import subprocess
import sys
from argparse import Namespace
from typing import Any

from tests.e2e.served import TSCTL, Served, eventually
from tests.lab.benchmarks.measuring.processes import command_of
from tests.lab.harness.clients import Clients, Habit
from tests.lab.harness.daemon import mark, marked, pack_accounts, successors
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.storm import run
from tests.lab.harness.verdict import Kind, Rules

MODELS = {"answer": Rules(), "stream": Rules(pieces=True)}
SETTINGS = "minWorkers: 2\nmaxWorkers: 2\nretry: true\nbatchSize: {size}\nmaxBatchDelay: 1\n"


class Unharmed(Clients):
    """Clients that never pause, some that pause within the grace time, and one on the control socket."""

    def __init__(self, served: Served, ledger: Ledger, seed: str, grace: float) -> None:
        ledger.generations |= dict.fromkeys(MODELS, 1)
        asks, streams = Habit("answer"), Habit("stream")
        idle = asks._replace(pause=lambda chance: chance.uniform(0.0, 0.8 * grace))
        habits = [asks, asks, asks, asks._replace(keep=False), asks._replace(slow=1.0), streams, idle, idle]
        super().__init__(served.url.removeprefix("http://"), ledger, seed, MODELS, habits)
        self._served = served
        self.add(self._read)

    def _read(self, chance: random.Random) -> None:
        """Read on the control socket."""
        while not self.over.wait(0.02):
            answer = self._served.command("GET", "/models/answer")
            if answer.status != 200 or b'"modelName": "answer"' not in answer.body:
                self.ledger.broken.append(f"the control socket answered {answer.status}")
            self.ledger.count("control requests")


def upgrade(served: Served, grace: float) -> Any:
    return json.loads(served.tsctl("upgrade", "--grace", str(grace), "--json"))


def upgrade_and_kill(served: Served) -> None:
    """Ask for an upgrade, and kill the new daemon as soon as it is there."""
    before, old = set(marked(served)), served.pid
    asking = subprocess.Popen([TSCTL, "upgrade"], env=served.environment, stderr=subprocess.PIPE, text=True)
    found: list[int] = []

    def appeared() -> bool:
        found[:] = successors(served, before)
        return bool(found) or asking.poll() is not None

    eventually(appeared, "a new daemon starts")
    if found and asking.poll() is None:
        os.kill(found[0], signal.SIGKILL)
    said = asking.communicate()[1]
    assert asking.returncode == 1, said
    assert "Upgrade failed; the running daemon stays: the new daemon was killed by SIGKILL" in said, said
    assert served.pid == old


def storm(served: Served, given: Namespace, ledger: Ledger) -> None:
    """Replace a daemon under load; every request must be right, and run once."""
    journal = mark(served)
    took: list[float] = []
    with served:
        served.start()
        for name, rules in MODELS.items():
            served.tsctl("register", pack_accounts(served, name, 1, SETTINGS.format(size=1 if rules.pieces else 4)))
        with Unharmed(served, ledger, str(given.seed), given.grace):
            for number in range(given.count):
                if number % 10 == 2:
                    upgrade_and_kill(served)
                    ledger.count("upgrades whose new daemon was killed")
                took.append(upgrade(served, given.grace)["seconds"])
                ledger.count("upgrades")
    for model, kinds in ledger.kinds.items():
        ledger.broken += [f"{count} requests to {model}: {kind}" for kind, count in kinds.items() if kind != Kind.RIGHT]
    ledger.broken += [f"{model} has answered nothing" for model in MODELS if not ledger.kinds[model][Kind.RIGHT]]
    ledger.check_runs(journal)
    ledger.expect("control requests", "answers that ended a kept connection")  # of the daemons that went
    eventually(lambda: not marked(served), lambda: f"all processes end: {[command_of(pid) for pid in marked(served)]}")
    print(f"an upgrade took {min(took):.2f} to {max(took):.2f} s")


def main(arguments: list[str]) -> int:
    return run("tests.lab.chaos.upgrades", arguments, storm, __doc__, count=50, grace=3.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
