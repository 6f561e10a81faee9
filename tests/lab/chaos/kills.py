"""Upgrades in which the old or the new daemon is killed at any moment: what was acknowledged is there afterwards.

    part of python -m tests.lab upgrades, or python -m tests.lab.chaos.kills [--count 50] [--seed N]

All the while a setting of a model is changed, to 1, 2, 3 …. A round ends with whoever serves then, or
with a daemon that is started anew: it has the last value that was acknowledged, or a later one.
"""

import http.client
import os
import random
import signal
import subprocess
import sys
import time
from argparse import Namespace

from tests.e2e.served import TSCTL, Served, eventually
from tests.lab.chaos.upgrades import serve
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.daemon import command_of, control, marked, successors
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.storm import run

LATEST_KILL = 2.0  # seconds after the beginning of an upgrade: so that some come after the hand-over, too


class Changer(Crowd):
    """Changes a setting without pause, and knows what was acknowledged.

    Attributes:
        tried, acknowledged: the last values.
    """

    def __init__(self, served: Served, ledger: Ledger, acknowledged: int, tried: int) -> None:
        super().__init__(ledger, "")
        self.acknowledged, self.tried = acknowledged, tried
        self._served = served
        self.add(self._change)

    def _change(self, chance: random.Random) -> None:
        while not self.over.wait(0.002):
            value = self.tried = self.tried + 1
            try:
                status = control(self._served, "PATCH", f"/models/answer?job_queue_size={value}").status
            except (OSError, http.client.HTTPException):
                continue  # the daemon was killed: it may be changed, or not
            if status == 200:
                self.acknowledged = value
            elif status == 503:
                self.ledger.count("changes refused during an upgrade")
            else:
                self.ledger.broken.append(f"a change was answered {status}")


def play(served: Served, chance: random.Random) -> str:
    """Kill one of the two daemons during an upgrade; gives who it was, and how the upgrade ended."""
    old, before = served.pid, set(marked(served))
    who, at = chance.choice(["old", "new"]), time.monotonic() + chance.uniform(0.0, LATEST_KILL)
    asking = subprocess.Popen(
        [TSCTL, "upgrade", "--grace", "0.2"],
        env=served.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    victim = old
    while time.monotonic() < at or (who == "new" and victim == old and asking.poll() is None):
        if who == "new" and victim == old:
            victim = next(successors(served, before), old)
        time.sleep(0.005)
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        who = f"{who}, gone already"
    return f"killed {who}: {'upgraded' if asking.wait() == 0 else 'not upgraded'}"


def serving(served: Served) -> bool:
    """Whether a daemon serves, or could be started: the one that was killed may still be on its way out."""
    return served.run("status").returncode == 0 or served.run("start").returncode == 0


def queue_size(served: Served) -> int:
    """The setting that is changed."""
    settings = served.describe("answer")["tsctl"]["settings"]
    return int(next(each["value"] for each in settings if each["name"] == "jobQueueSize"))


def storm(served: Served, given: Namespace, ledger: Ledger) -> None:
    chance = random.Random(given.seed)
    serve(served)
    value = tried = queue_size(served)
    try:
        for number in range(given.count):
            with Changer(served, ledger, value, tried) as changer:
                ledger.count(played := play(served, chance))
            eventually(lambda: serving(served), "there is a daemon again")
            value, tried = queue_size(served), changer.tried
            if not changer.acknowledged <= value <= tried:
                known = f"{changer.acknowledged} was acknowledged, and it is {value}"
                ledger.broken.append(f"round {number}, {played}: {known}")
    finally:
        served.stop()
    ledger.count("changes", tried)
    eventually(lambda: not marked(served), lambda: f"all processes end: {[command_of(pid) for pid in marked(served)]}")


def main(arguments: list[str]) -> int:
    return run("tests.lab.chaos.kills", arguments, storm, __doc__, count=50)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
