"""Kill daemons for some minutes, also within upgrades, and check what each serves afterwards; print the seeds.

    python -m tests.lab history [--seconds 180] [--kills 10] [--seed N]

Clients command a daemon, it is killed, it starts again, and what it serves then is held against the history. Half of
the rounds end within an upgrade: the old or the new daemon is killed at a random moment of it, and then whoever serves.
After each restart, beside what the checker says: no process of the daemon before is left, every version answers with
its own archive, and the state directory holds what the snapshot refers to and nothing else.

`--kills` is how often the daemon of one seed is killed. The seed after the first one is the next number: `--seed N
--seconds 0` repeats one (what the clients send; how they meet is the machine's).
"""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from argparse import Namespace
from pathlib import Path

from tests.e2e.served import TSCTL, Served, eventually, running
from tests.lab.benchmarks.measuring.processes import command_of
from tests.lab.harness.daemon import mark, marked, successors
from tests.lab.harness.footprint import kept_directories
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.storm import run
from tests.lab.harness.verdict import Broken
from tests.lab.history.checker import Gap, Operation, Outcome, gaps
from tests.lab.history.clients import ARCHIVES, VERSIONS, Client, archive_name
from tests.lab.history.commands import BROKEN, Registered, Version, only, shown

CLIENTS = 4
MOST = 150  # answered commands until the daemon is killed
LONGEST = 0.02  # seconds more: a kill also comes between two answers
LATEST = 2.0  # seconds after the beginning of an upgrade: so that some kills come after the hand-over, too


class Run:
    """A daemon, which has not been started, and what is known to be registered in it.

    Args:
        served: is stopped by whoever has made the run.
        ledger: counts the kills of each kind, and the commands.
    """

    def __init__(self, served: Served, seed: int, ledger: Ledger) -> None:
        self._rng = random.Random(seed)
        self._served = served
        self._ledger = ledger
        mark(served)
        _write_archives(served)
        served.start()
        self._registered: Registered = frozenset()

    def round(self) -> None:
        """Let clients loose, kill the daemon, start it again, and look.

        Raises:
            Broken: with the history, where no order of the commands explains what is found.
        """
        clients = [Client(self._served, number, random.Random(self._rng.random())) for number in range(CLIENTS)]
        threads = [threading.Thread(target=client.run) for client in clients]
        for thread in threads:
            thread.start()
        enough = self._rng.randrange(MOST)
        eventually(lambda: sum(len(client.history) for client in clients) >= enough, "the clients are answered")
        time.sleep(self._rng.uniform(0.0, LONGEST))
        if self._rng.random() < 0.5:
            self._kill_within_upgrade()
        self._kill()
        eventually(lambda: not any(thread.is_alive() for thread in threads), "each client sees that the daemon is gone")
        eventually(lambda: not any(map(running, marked(self._served))), "every process of the killed daemon is gone")
        self._served.start()
        found = self._look()
        history = [operation for client in clients for operation in client.history]
        self._ledger.count("commands", len(history))
        for name, gap in gaps(self._registered, history, found).items():
            raise Broken(self._told(name, gap, history, found))
        self._registered = found

    def _kill_within_upgrade(self) -> None:
        """Kill the old or the new daemon during an upgrade."""
        old, before = self._served.pid, set(marked(self._served))
        who, at = self._rng.choice(["old", "new"]), time.monotonic() + self._rng.uniform(0.0, LATEST)
        asking = subprocess.Popen(
            [TSCTL, "upgrade", "--grace", "0.2"],
            env=self._served.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        victim = old
        while time.monotonic() < at or (who == "new" and victim == old and asking.poll() is None):
            if who == "new" and victim == old:
                victim = next(successors(self._served, before), old)
            time.sleep(0.005)
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            who = f"{who}, gone already"
        self._ledger.count(f"killed {who}: {'upgraded' if asking.wait() == 0 else 'not upgraded'}")

    def _kill(self) -> None:
        """Kill whoever serves, and wait until nothing is left of any daemon."""
        for pid in {*marked(self._served)}:
            if " -m tsctl.daemon " in f"{command_of(pid)} ":
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._ledger.count("kills")

    def _look(self) -> Registered:
        """See what is registered, when nothing is on its way any more."""
        eventually(lambda: all(model["state"] != "loading" for model in self._served.status["models"]), "all is loaded")
        versions = {}
        for model in self._served.status["models"]:
            archive = model["url"].partition("-")[0]
            what = Version(archive, model["batchSize"], model["wanted"], model["default"])
            versions[model["name"], model["version"]] = what
            self._check_version(model["name"], model["version"], model["state"], what)
        self._check_directories()
        return frozenset(versions.items())

    def _check_version(self, name: str, version: str, state: str, what: Version) -> None:
        expected = "no workers" if not what.workers else "failed" if what.archive == BROKEN else "ready"
        if state != expected:
            raise Broken(f"{name}/{version} is {state}, and should be {expected}")
        if state == "ready":
            told = self._served.ask(f"/predictions/{name}/{version}", b"x").body.decode()
            if told != what.archive:
                raise Broken(f"{name}/{version} answers {told!r}, and is {what.archive!r}")

    def _check_directories(self) -> None:
        """See that the state directory has what the snapshot names, and no draft, once none is being written."""
        state = self._served.folder / "state"
        eventually(lambda: not any(state.glob(".*")), "no snapshot is being written")
        snapshot = state / "snapshot.json"
        wanted = kept_directories(snapshot) if snapshot.exists() else set()
        there = {directory.name for directory in (state / "models").iterdir()}
        if there != wanted:
            raise Broken(f"the state directory has {there}, and should have {wanted}")

    def _told(self, name: str, gap: Gap, history: list[Operation], found: Registered) -> str:
        mine = [each for each in history if each.command.name == name and each.outcome is not Outcome.REFUSED]
        lines = "\n".join(str(each) for each in sorted(mine, key=lambda each: each.began))
        left = "\n".join(str(each) for each in gap.left) or "nothing"
        return (
            f"nothing explains what was found\nbefore:  {shown(only(name, self._registered))}"
            f"\n{lines}\nfound:   {shown(only(name, found))}\nreached: {shown(gap.reached)}\nwith these left:\n{left}"
        )


def _write_archives(served: Served) -> None:
    for version in VERSIONS:
        for archive in ARCHIVES:
            told = served.folder / "told.txt"
            told.write_text(archive)
            file = served.store / served.pack("tells", name="m", version=version, extra_files=str(told))
            file.rename(served.store / archive_name(archive, version))


def storm(served: Served, given: Namespace, ledger: Ledger) -> None:
    """Kill one daemon after the other, each of a seed and in a folder of its own, until the time is over."""
    end = time.monotonic() + given.seconds
    for seed in itertools.count(given.seed):
        with tempfile.TemporaryDirectory(dir=served.folder) as folder:
            one = Served(Path(folder))
            try:
                history = Run(one, seed, ledger)
                for _ in range(given.kills):
                    history.round()
            except Broken as broken:
                ledger.broken.append(f"seed {seed}: {broken}")
            finally:
                one.stop()
                ledger.broken += one.new_tracebacks()
        print(f"seed {seed}: {given.kills} kills", flush=True)
        if ledger.broken or time.monotonic() >= end:
            return


def main(arguments: list[str]) -> int:
    return run("tests.lab.history", arguments, storm, __doc__, seconds=180.0, kills=10)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
