"""Harm a daemon whose workers run on a Ray cluster.

    python -m tests.lab chaos-ray [--seconds 600] [--seed N]

While clients ask, each few seconds a worker's process, an actor, a node or the bridge is killed, or the model replaced,
or the daemon upgraded. Nodes that are killed are added again. What must hold:

* each request is answered;
* without `retry` no handler runs a request twice; with it none a third time;
* every answer that is no 200 names a reason;
* afterwards the model is served again.
"""

import contextlib
import itertools
import os
import random
import signal
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from tests.e2e.served import Served
from tests.extensions.ray.models import Requests, bridge_of, kill_actor, register, workers_of
from tests.extensions.ray.real_cluster import RayCluster
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.storm import run

CLIENTS = 4
BATCH = 0.05  # seconds that a handler sleeps
HARMS = ("process", "actor", "node", "bridge", "replace", "upgrade")


class Load(Crowd):
    """Clients that ask without a pause until the end of the block, each request with an id of its own."""

    def __init__(self, requests: Requests, clients: int, seconds: float) -> None:
        super().__init__(Ledger(), requests.model)
        self.requests = requests
        self._seconds = seconds
        self._numbers = itertools.count()
        for _ in range(clients):
            self.add(self._ask)

    def wait_for(self, count: int) -> None:
        """Wait for so many further answers."""
        until = len(self.requests.answers) + count
        deadline = time.monotonic() + 120
        while len(self.requests.answers) < until:
            assert time.monotonic() < deadline, "no answers come"
            time.sleep(0.01)

    def _ask(self, _chance: random.Random) -> None:
        while not self.over.is_set():
            name = f"{self.requests.model}-{next(self._numbers)}"
            try:
                answer = self.requests.ask(name, self._seconds)
            except OSError as error:
                self.ledger.unanswered.append(f"{name}: {error!r}")
                continue
            if answer.status != 200:
                time.sleep(0.05)  # the queue may be full, or no worker there


class Found(NamedTuple):
    """The results of a run: of the model with retry, and of the one without."""

    loads: dict[str, Load]
    harmed: Counter[str]
    served_again: bool


def chaos(
    cluster: RayCluster, served: Served, seconds: float, seed: int, tell: Callable[[str], None] = lambda text: None
) -> Found:
    """Harm for so long; the cluster has two nodes or more that stay."""
    drawn = random.Random(seed)
    options = ("--workers", "3", "--startup-timeout", "120")
    register(served, "ran", *options, "--retry", name="again", num_cpus=0.1)
    register(served, "ran", *options, "--no-retry", name="once", num_cpus=0.1)
    cluster.add("victim")
    harmed: Counter[str] = Counter()
    loads = {name: Load(Requests(served, name), CLIENTS, BATCH) for name in ("again", "once")}
    until = time.monotonic() + seconds
    with loads["again"], loads["once"]:
        while time.monotonic() < until:
            harm, name = drawn.choice(HARMS), drawn.choice(["again", "once"])
            with contextlib.suppress(OSError, AssertionError, IndexError):  # there may be no worker, or a command fails
                _harm(harm, name, cluster, served, drawn)
                tell(f"{harm} {name}")
                harmed[harm] += 1
            time.sleep(drawn.uniform(0.5, 4.0))
    cluster.kill("victim")
    deadline = time.monotonic() + 60
    again = False
    while not again and time.monotonic() < deadline:
        again = all(load.requests.ask(f"last-{time.monotonic()}").status == 200 for load in loads.values())
        time.sleep(0.2)
    return Found(loads, harmed, again)


def _harm(harm: str, name: str, cluster: RayCluster, served: Served, drawn: random.Random) -> None:
    match harm:
        case "process":
            os.kill(drawn.choice(workers_of(served, name))["pid"], signal.SIGKILL)
        case "actor":
            kill_actor(drawn.choice(workers_of(served, name)))
        case "node":
            cluster.kill("victim")
            cluster.add("victim")
        case "bridge":
            os.kill(bridge_of(served), signal.SIGKILL)
        case "replace":
            retry = "--retry" if name == "again" else "--no-retry"
            register(served, "ran", "--replace", "--workers", "3", retry, name=name, num_cpus=0.1)
        case "upgrade":
            served.tsctl("upgrade")


def verdict(found: Found) -> list[str]:
    """Return what does not hold; empty if all does."""
    wrong = [] if found.served_again else ["the models are not served again"]
    for name, load in found.loads.items():
        ran, answers = Counter(load.requests.ran), load.requests.answers
        wrong += [f"{name}: no answer: {failure}" for failure in (*load.ledger.unanswered, *load.ledger.broken)]
        most = 2 if name == "again" else 1
        wrong += [f"{name}: {each} ran {count} times" for each, count in ran.items() if count > most]
        for each, answer in answers.items():
            if answer.status == 200 and not ran[each]:
                wrong.append(f"{name}: {each} is 200, and never ran")
            if answer.status != 200 and not answer.json["message"]:
                wrong.append(f"{name}: {each} is {answer.status}, without a reason")
    return wrong


def storm(served: Served, given: Namespace, ledger: Ledger) -> None:
    """Harm a daemon on a cluster of this machine, and count what became of the requests."""
    cluster = RayCluster(served.folder)
    try:
        for name in ("one", "two"):
            cluster.add(name)
        served.start("--ray-address", cluster.address)
        began = time.monotonic()
        found = chaos(
            cluster, served, given.seconds, given.seed,
            lambda text: print(f"{time.monotonic() - began:6.1f} s  {text}", flush=True),
        )  # fmt: skip
        ledger.broken += verdict(found)
        ledger.done += found.harmed
        for name, load in found.loads.items():
            ledger.done += Counter(f"{name}: answered {answer.status}" for answer in load.requests.answers.values())
            ledger.done[f"{name}: ran again"] += sum(count > 1 for count in Counter(load.requests.ran).values())
    finally:
        served.stop()
        cluster.close()


def main(arguments: list[str]) -> int:
    return run("tests.extensions.ray.chaos", arguments, storm, __doc__, seconds=600.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
