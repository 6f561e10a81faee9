"""Upgrades in which the old or the new daemon is killed at any moment: what was acknowledged is there afterwards.

    python -m tests.lab.chaos.kills [--count 50] [--seed 0]

All the while a setting of a model is changed, to 1, 2, 3 …. A round ends with whoever serves then, or
with a daemon that is started anew: it has the last value that was acknowledged, or a later one.
"""

import argparse
import http.client
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from tests.e2e.served import TSCTL, Served, eventually
from tests.lab.chaos.upgrades import command_of, marked, serve

LATEST_KILL = 2.0  # seconds after the beginning of an upgrade: so that some come after the hand-over, too


class Changer:
    """Changes a setting without pause, and knows what was acknowledged.

    Attributes:
        tried, acknowledged: the last values.
        refused: how often an upgrade was under way.
    """

    def __init__(self, control: str, acknowledged: int, tried: int) -> None:
        self.acknowledged, self.tried = acknowledged, tried
        self.refused = 0
        self._control = control
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._change)

    def __enter__(self) -> "Changer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _change(self) -> None:
        while not self._over.wait(0.002):
            value = self.tried = self.tried + 1
            connection = http.client.HTTPConnection("tsctl", timeout=10)
            try:
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.connect(self._control)
                connection.request("PATCH", f"/models/answer?job_queue_size={value}")
                status = connection.getresponse().status
            except (OSError, http.client.HTTPException):
                continue  # the daemon was killed: it may be changed, or not
            finally:
                connection.close()
            if status == 200:
                self.acknowledged = value
            else:
                assert status == 503, status
                self.refused += 1


def play(served: Served, changer: Changer, chance: random.Random) -> str:
    """Kill one of the two daemons during an upgrade; gives who it was, and how the upgrade ended."""
    old = served.pid
    before = set(marked(served))
    who, at = chance.choice(["old", "new"]), time.monotonic() + chance.uniform(0.0, LATEST_KILL)
    asking = subprocess.Popen(
        [TSCTL, "upgrade", "--grace", "0.2"],
        env=served.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    victim = old
    while time.monotonic() < at or (who == "new" and victim == old and asking.poll() is None):
        for pid in set(marked(served)) - before if who == "new" and victim == old else ():
            victim = pid if "--inherit=" in command_of(pid) else victim
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


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    chance = random.Random(given.seed)
    outcomes: Counter[str] = Counter()
    lost: list[str] = []
    refused = 0
    with tempfile.TemporaryDirectory() as folder:
        served = serve(Path(folder))
        value = tried = queue_size(served)
        try:
            for number in range(given.count):
                with Changer(served.environment["TSCTL_SOCKET"], value, tried) as changer:
                    outcomes[played := play(served, changer, chance)] += 1
                eventually(lambda: serving(served), "there is a daemon again")
                value, tried = queue_size(served), changer.tried
                if not changer.acknowledged <= value <= tried:
                    lost.append(f"round {number}, {played}: {changer.acknowledged} was acknowledged, and it is {value}")
                refused += changer.refused
                print(f"\r{number + 1} of {given.count}", end="", flush=True, file=sys.stderr)
        finally:
            served.stop()
        print(file=sys.stderr)
        for outcome, count in sorted(outcomes.items()):
            print(f"{count:4} {outcome}")
        print(f"{refused:4} changes refused, of {tried}")
        print("\n".join((f"{len(lost):4} lost", *lost)))
        eventually(lambda: not marked(served), f"all processes end: {[command_of(pid) for pid in marked(served)]}")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
