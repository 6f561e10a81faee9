"""The last scenes: while clients go on asking, a worker is killed, the model replaced, and the daemon upgraded."""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tsctl.client import DaemonClient, checked
from tsctl.errors import CliError
from tsctl.showcase.facts import Disturbance
from tsctl.showcase.load import AskingClients, clients, order_for
from tsctl.showcase.measuring import REGISTRATION
from tsctl.showcase.stage import MODEL, Stage

LINGER = 2.0  # seconds between two disturbances
PATIENCE = 60.0  # seconds for a new worker
TICK = 0.02


@dataclass(frozen=True)
class DisturbanceKind:
    """A row of the table.

    Attributes:
        activity: shown while it goes on.
        text: what was done.
        act: does it, waits until the model serves again, and returns the processes before and after.
    """

    activity: str
    text: str
    act: Callable[[Stage, AskingClients], str]


def kill_worker(stage: Stage, asking: AskingClients) -> str:
    """Kill the only worker, and wait for the next.

    Raises:
        CliError: no other worker is ready in time.
    """
    killed = _worker(stage, asking, other_than=None)
    os.kill(killed, signal.SIGKILL)
    born = _worker(stage, asking, other_than=killed)
    return f"{killed} → {born}"


def replace_model(stage: Stage, asking: AskingClients) -> str:
    """Register the archive once more, in place of the version that serves."""
    before = _worker(stage, asking, other_than=None)
    parameters = REGISTRATION | {"batch_size": stage.client.json("GET", f"/models/{MODEL}")[0]["batchSize"]}
    stage.client.json("POST", "/models", url=str(stage.archive), replace="true", **parameters)
    return f"worker {before} → {_worker(stage, asking, other_than=before)}"


def upgrade_daemon(stage: Stage, asking: AskingClients) -> str:
    """Replace the daemon by a new process.

    Raises:
        CliError: the upgrade failed; the old daemon goes on.
    """
    document: Any = None
    for event in stage.client.events("POST", "/tsctl/upgrade", grace=1, timeout=60, python=sys.executable):
        if event["stage"] == "done":
            document = checked(event["status"], event["document"])
    if document is None:
        raise CliError("the daemon exited before the upgrade was done")
    asking.check()
    return f"{document['old']['pid']} → {document['new']['pid']}"


DISTURBANCES = (
    DisturbanceKind("killing the worker", "worker killed (kill -9)", kill_worker),
    DisturbanceKind("replacing the model", "model replaced", replace_model),
    DisturbanceKind("upgrading the daemon", "daemon upgraded", upgrade_daemon),
)


def disturb(stage: Stage) -> None:
    """Do everything in the table, and count what becomes of the requests meanwhile.

    Raises:
        CliError: a request failed, or a disturbance did.
    """
    facts = stage.facts

    def count(answered: int, failed: int) -> None:
        facts.answered, facts.failed = answered, failed

    order = order_for(stage.client.path, MODEL, facts.clients, None)
    with clients(order, stage.body, count) as asking:
        facts.counting = True
        facts.do("the clients ask", stage.now())
        _linger(asking)
        for kind in DISTURBANCES:
            facts.do(kind.activity, stage.now())
            began = stage.now()
            each = Disturbance(kind.text, began, facts.ended)
            facts.disturbances.append(each)
            each.outcome = kind.act(stage, asking)
            each.seconds = stage.now() - began
            facts.do("the clients go on asking", stage.now())
            _linger(asking)
        facts.do("waiting for the last answers", stage.now())
        asking.stop()
    stage.failures = asking.failures


def ready_worker(client: DaemonClient) -> int | None:
    """Return the pid of the model's first worker that is ready; None while there is none."""
    workers = client.json("GET", f"/models/{MODEL}")[0]["workers"]
    return next((int(worker["pid"]) for worker in workers if worker["status"] == "READY"), None)


def _worker(stage: Stage, asking: AskingClients, other_than: int | None) -> int:
    deadline = time.monotonic() + PATIENCE
    while (pid := ready_worker(stage.client)) is None or pid == other_than:
        asking.check()
        if time.monotonic() > deadline:
            raise CliError(f"no worker of `{MODEL}` was ready within {PATIENCE:g} s")
        time.sleep(TICK)
    return pid


def _linger(asking: AskingClients) -> None:
    until = time.monotonic() + LINGER
    while time.monotonic() < until:
        asking.check()
        time.sleep(TICK)
