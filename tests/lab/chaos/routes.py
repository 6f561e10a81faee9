"""`make chaos-routes`: change routes and roll versions out while workers are killed and the daemon is replaced.

    python -m tests.lab.chaos.routes [--seconds 600] [--seed N] [--upgrade-every 30]

Three versions, of which 3.0 fails for half of its requests. Every request must be answered, with its own words, by
the version that it names, or by one that the route of its moment has: a client that the route keeps at a version by
that very version, and the others in the proportion of the weights, within five standard deviations. A rollout of 3.0
must be taken back, one of a good version must not. Now and then the daemon is killed while no client asks, and must
go on as before.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from daemon.marfile import Packing, write_archive
from daemon.models.routing.choice import choose_for
from tests.e2e.served import Served, eventually, running

PATIENCE = 60.0  # seconds; a request without an answer after that is unanswered
GOOD, BAD = ("1.0", "2.0"), "3.0"
HANDLER = """
import random

def handle(data, context):
    version = context.manifest["model"]["modelVersion"]
    if data and version == "3.0" and random.random() < 0.5:
        raise ValueError("the bad version")
    return [f"{version} {row['body']}" for row in data or []]
"""
CONFIG = "minWorkers: 2\nmaxWorkers: 2\nretry: true\nisolate: false\n"
DEVIATIONS = 5.0


class Seen(NamedTuple):
    """The answer to a request that named no version: between which moments, of which user, by which version."""

    asked: float
    answered: float
    user: str
    version: str


class Epoch(NamedTuple):
    """A time in which the route did not change; `weights` is empty while a rollout steered."""

    begun: float
    ended: float
    versions: frozenset[str]
    weights: tuple[tuple[str, float], ...] = ()
    sticky: bool = False


class Storm:
    """A daemon, its clients, and whoever changes its routes, kills its workers and replaces it.

    Attributes:
        told: answers and changes by kind.
        wrong: a sentence for each thing that must not be.
    """

    def __init__(self, served: Served, seed: int, upgrade_every: float) -> None:
        self.told: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.seen: list[Seen] = []
        self.epochs: list[Epoch] = []
        self._served = served
        self._seed = seed
        self._upgrade_every = upgrade_every
        self._over = threading.Event()
        self._open = threading.Event()  # clients may ask
        self._open.set()
        self._faults = threading.Lock()  # one of the daemon's replacements at a time

    def run(self, seconds: float) -> None:
        """Let everybody loose for a while."""
        works = [*[self._ask] * 8, self._kill, self._upgrade, self._steer]
        threads = [
            threading.Thread(target=self._guarded, args=(work, random.Random(f"{self._seed} {number}")))
            for number, work in enumerate(works)
        ]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self._over.set()
        for thread in threads:
            thread.join()

    def _guarded(self, work: Any, chance: random.Random) -> None:
        try:
            work(chance)
        except Exception as error:  # noqa: BLE001 - a thread's bug would go unseen
            self.wrong.append(f"{work.__name__} broke: {error!r}")

    def _ask(self, chance: random.Random) -> None:
        while not self._over.is_set():
            self._open.wait()
            words, user = f"{chance.random()}", f"{chance.randrange(200)}"
            named = chance.choice((None, None, None, None, "path", "header"))
            version = chance.choice((*GOOD, BAD)) if named else ""
            path = f"/predictions/m/{version}" if named == "path" else "/predictions/m"
            headers = {"Content-Type": "text/plain", "X-User": user}
            headers |= {"X-Model-Version": version} if named == "header" else {}
            asked = time.monotonic()
            status, body = self._answer(path, words, headers)
            self._judge(Seen(asked, time.monotonic(), user, version), status, body, words)

    def _judge(self, seen: Seen, status: int, body: str, words: str) -> None:
        by, _, echo = body.partition(" ")
        if status == 200:
            if echo != words:
                self.wrong.append(f"{words} was answered {body[:200]!r}")
            elif seen.version and by != seen.version:
                self.wrong.append(f"a request for {seen.version} was answered by {by}")
            else:
                self.told["right, of a named version" if seen.version else f"right, by {by}"] += 1
                if not seen.version:
                    self.seen.append(seen._replace(version=by))
        elif status == 503 and "the bad version" in body:
            self.told["failed by 3.0"] += 1
            if seen.version in GOOD:
                self.wrong.append(f"a request for {seen.version} failed in {BAD}")
            elif not seen.version:
                self.seen.append(seen._replace(version=BAD))
        elif status in (500, 503, 507) and "kill" in body:
            self.told["told that its worker was killed, twice"] += 1
        elif status:
            self.wrong.append(f"answered {status} {body[:300]!r}")

    def _answer(self, path: str, words: str, headers: dict[str, str]) -> tuple[int, str]:
        """Return status and body; 0 without an answer."""
        connection = http.client.HTTPConnection(self._served.url.removeprefix("http://"), timeout=PATIENCE)
        with contextlib.closing(connection):
            try:
                connection.request("POST", path, words, headers)
                response = connection.getresponse()
                return response.status, response.read().decode()
            except (OSError, http.client.HTTPException) as error:
                self.wrong.append(f"a request was not answered: {error!r}")
                return 0, ""

    def _kill(self, chance: random.Random) -> None:
        while not self._over.wait(0.5):
            version = chance.choice((*GOOD, BAD))
            described = self._command("GET", f"/models/m/{version}")[1][0]
            if described["tsctl"]["state"] == "failed":  # five workers were killed before any had work
                self.told["a version had given up, and was told to try again"] += 1
                self._command("POST", f"/models/m/{version}/retry?synchronous=false")
                continue
            pids = [worker["pid"] for worker in described["workers"] if worker["pid"]]
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(chance.choice(pids), signal.SIGKILL)
                self.told["workers killed"] += 1

    def _upgrade(self, chance: random.Random) -> None:
        while not self._over.wait(self._upgrade_every):
            with self._faults:
                done = self._served.run("upgrade")
            self.told["upgrades" if done.returncode == 0 else "upgrades that failed, as a worker was killed"] += 1

    def _steer(self, chance: random.Random) -> None:
        while not self._over.is_set():
            work = chance.choice((self._route, self._route, self._roll_out_good, self._roll_out_bad, self._restart))
            work(chance)

    def _route(self, chance: random.Random) -> None:
        """Set a route, let it be for a while, and note the time for which it was all there was."""
        weights = {version: chance.choice((1, 10, 50, 90)) for version in chance.sample(GOOD, chance.choice((1, 2, 2)))}
        sticky = chance.random() < 0.5
        asked = {"weights": " ".join(f"{version}={weight}" for version, weight in weights.items())}
        asked |= {"sticky": "header:x-user"} if sticky else {}
        if chance.random() < 0.3:
            asked |= {"shadow": BAD, "allow_effects": "true", "sample": "50%"}
        before = time.monotonic()
        self._must("PUT", f"/models/m/route?{urlencode(asked)}")
        begun = time.monotonic()
        self._close_epoch(before)
        self._over.wait(chance.uniform(1.0, 6.0))
        for version in weights:
            status, _ = self._command("DELETE", f"/models/m/{version}")
            if status != 409:
                self.wrong.append(f"unregistering {version}, which had a weight, was {status}")
        self._began(begun, frozenset(weights), tuple(weights.items()), sticky=sticky)
        self.told["routes"] += 1

    def _roll_out_good(self, chance: random.Random) -> None:
        """Roll the good version out that is not the default one; it may be ended by a command."""
        _, shown = self._command("GET", "/models/m/route")
        new = next(version for version in GOOD if version != shown["default"])
        state = self._roll_out(new, "30,100", chance.random() < 0.3 and chance.choice(("promote", "abort")), chance)
        self.told[f"a good version {state}"] += 1
        if state.endswith("by itself") and not state.startswith("promoted"):
            self.wrong.append(f"a good version was {state}: {self._command('GET', '/models/m/rollout')[1]}")

    def _roll_out_bad(self, chance: random.Random) -> None:
        state = self._roll_out(BAD, "50,100", False, chance)
        self.told[f"the bad version {state}"] += 1
        if not state.startswith("aborted") and not self._over.is_set():
            self.wrong.append(f"the bad version was {state}")

    def _roll_out(self, new: str, steps: str, ended_by: Any, chance: random.Random) -> str:
        """Roll a version out, and wait for the end; return how it ended."""
        shown = self._command("GET", "/models/m/route")[1]
        olds = (shown["route"] or {"weights": {shown["default"]: 1}})["weights"]
        if not set(olds) - {new}:
            return "not rolled out: it answers all already"
        before = time.monotonic()
        asked = {"version": new, "steps": steps, "every": "1s", "abort_if": "errors>20%"}
        self._must("POST", f"/models/m/rollout?{urlencode(asked)}")
        begun = time.monotonic()
        self._close_epoch(before)
        deadline = begun + 90.0
        if ended_by:
            self._over.wait(chance.uniform(0.1, 2.0))
            self._command("POST", f"/models/m/rollout/{ended_by}")  # 409 if it has just ended
        while True:
            rollout = self._command("GET", "/models/m/rollout")[1]["rollout"]
            if rollout["state"] in ("promoted", "aborted"):
                break
            if self._over.is_set():  # nobody asks any more, so nothing will be shown
                self._command("POST", "/models/m/rollout/abort")
            elif time.monotonic() > deadline:
                self.wrong.append(f"a rollout does not end: {rollout}")
                self._must("POST", "/models/m/rollout/abort")
            time.sleep(0.1)
        self._began(begun, frozenset(olds) | {new})
        ended = time.monotonic()
        self._close_epoch(ended)
        shown = self._command("GET", "/models/m/route")[1]
        left = shown["route"] or {"weights": {shown["default"]: 1}}
        if rollout["state"] == "aborted" and left["weights"] != olds:
            self.wrong.append(f"the route was {olds}, and {left} after a rollout was taken back")
        self._began(ended, frozenset(left["weights"]), tuple(left["weights"].items()), sticky="sticky" in left)
        by = "by a command" if "command" in (rollout["reason"] or "") else "by itself"
        return f"{rollout['state']} {by}"

    def _restart(self, chance: random.Random) -> None:
        """Kill the daemon while no client asks; the next one must have the same route."""
        if chance.random() < 0.7 or self._over.is_set():
            return
        with self._faults:
            before = self._command("GET", "/models/m/route")[1]
            self._open.clear()
            time.sleep(1.0)  # what was asked is answered
            pid = self._served.pid
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: not running(pid), "the daemon was killed")
            self._served.start("--queue-jobs", "2000")
            self._open.set()
            if (after := self._command("GET", "/models/m/route")[1]) != before:
                self.wrong.append(f"the route was {before}, and {after} after the daemon was killed")
            self.told["daemons killed"] += 1

    def _began(
        self,
        begun: float,
        versions: frozenset[str],
        weights: tuple[tuple[str, float], ...] = (),
        *,
        sticky: bool = False,
    ) -> None:
        """Note an epoch whose end is the next change."""
        self.epochs.append(Epoch(begun, float("inf"), versions, weights, sticky))

    def _close_epoch(self, ended: float) -> None:
        if self.epochs:
            self.epochs[-1] = self.epochs[-1]._replace(ended=ended)

    def _must(self, method: str, target: str) -> None:
        status, document = self._command(method, target)
        if status != 200:
            self.wrong.append(f"{method} {target} was {status}: {document}")

    def _command(self, method: str, target: str) -> tuple[int, Any]:
        """Send a command, again while the daemon is being replaced or started; return status and document."""
        while True:
            try:
                answer = self._served.command(method, target)
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)
                continue
            if answer.status == 503 and "upgraded" in answer.body.decode():
                time.sleep(0.1)
                continue
            return answer.status, json.loads(answer.body)


def check(storm: Storm) -> None:
    """Hold the answers to requests that named no version against the routes of their time."""
    for epoch in storm.epochs:
        within = [each for each in storm.seen if epoch.begun < each.asked and each.answered < epoch.ended]
        foreign = [each for each in within if each.version not in epoch.versions]
        storm.wrong += [f"{each} is not of {epoch}" for each in foreign[:3]]
        if not epoch.weights:
            continue
        if epoch.sticky:
            moved = [each for each in within if choose_for(epoch.weights, "m", each.user) != each.version]
            storm.wrong += [f"{each} is not where {epoch} keeps its user" for each in moved[:3]]
            storm.told["answers to clients that stay at their version"] += len(within)
            continue
        counts, total = Counter(each.version for each in within), sum(weight for _, weight in epoch.weights)
        storm.told["answers held against weights"] += len(within)
        for version, weight in epoch.weights:
            share, count = weight / total, len(within)
            if abs(counts[version] - share * count) > DEVIATIONS * (count * share * (1 - share)) ** 0.5 + 1:
                storm.wrong.append(f"{version} has {counts[version]} of {count} answers in {epoch}")


def storm_over(folder: Path, seconds: float, seed: int, upgrade_every: float) -> Storm:
    """Run a storm against a daemon in this folder, which must be empty; return what was told."""
    served = Served(folder)
    (folder / "handler.py").write_text(HANDLER)
    (folder / "model-config.yaml").write_text(CONFIG)
    served.start("--queue-jobs", "2000")
    try:
        for version in (*GOOD, BAD):
            packing = Packing(
                model_name="m", version=version, handler=str(folder / "handler.py"),
                config_file=folder / "model-config.yaml",
            )  # fmt: skip
            archive = write_archive(packing, served.store)
            served.tsctl("register", archive.rename(served.store / f"m-{version}.mar").name)
        made = Storm(served, seed, upgrade_every)
        made.run(seconds)
        check(made)
    finally:
        served.stop()
    return made


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.chaos.routes", description="Change routes under load.")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long (600)")
    parser.add_argument("--seed", type=int, default=1, help="of what the clients send and of the changes (1)")
    parser.add_argument("--upgrade-every", type=float, default=30.0, help="seconds between two upgrades (30)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        made = storm_over(Path(folder), options.seconds, options.seed, options.upgrade_every)
    for kind, count in sorted(made.told.items()):
        print(f"{count:8} {kind}")
    print(f"{len(made.wrong):8} wrong")
    for each in made.wrong[:20]:
        print(each)
    return 1 if made.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
