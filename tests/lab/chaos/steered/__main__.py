"""Models on demand, routes and rollouts, over HTTP and other protocols, while all that may fail does.

    python -m tests.lab chaos-steered [--seconds 600] [--seed N] [--upgrade-every 40]

Twelve models are loaded on demand, four of them with versions under routes and rollouts that change, and the memory has
room for a third; keep-alives and pins are set, and an operator unloads and loads one. Workers are killed, and the
daemon is upgraded and killed. Every request must be answered, by its model, and by the version that it names or one
that the route of its moment has; the shares of versions lie within five standard deviations of their weights. A rollout
of a bad version must be taken back, and one of a good version must not.
"""

import sys
import time
from argparse import Namespace

from tests.e2e.served import Served, free_address
from tests.lab.chaos.steered.asking import CLIENTS, Askers
from tests.lab.chaos.steered.outages import Outages
from tests.lab.chaos.steered.steering import Steering
from tests.lab.chaos.steered.verdict import BAD, HELD, bounds, hold
from tests.lab.harness.daemon import logs, mark
from tests.lab.harness.footprint import left_behind, stop_alone
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.protocol_clients import all_protocol_clients
from tests.lab.harness.storm import run
from tsctl.daemon.marfile import Packing, write_archive

STEERED = {"s0": ("1.0", "2.0", BAD), "s1": ("1.0", "2.0", BAD), "s2": ("1.0", "2.0", BAD), "s3": ("1.0", "2.0")}
MODELS = STEERED | {f"m{number}": ("1.0",) for number in range(8)}
SCALED = {"s0", "m0", "m1"}  # their number of workers follows the load
KEPT = {"m0", "m1", "m2", "m3"}  # these stay in memory for a minute without a request, or until others need their room
BUDGET = "72MiB"  # 19 versions, whose workers take about 12 MiB each
SETTINGS = "minWorkers: 1\nmaxWorkers: {most}\nretry: true\nisolate: false\nloading: on_demand\nkeepAlive: {kept}s\n"
HANDLER = """
import os, random, time

def handle(data, context):
    manifest = context.manifest["model"]
    if data and manifest["modelVersion"] == "3.0" and random.random() < 0.5:
        raise ValueError("the bad version")
    time.sleep(0.03 if manifest["modelName"] in {scaled!r} else 0.003)
    by = f"{manifest['modelName']} {manifest['modelVersion']} {os.getpid()}"
    return [told(by, row["body"]) for row in data or []]

def told(by, body):
    if isinstance(body, dict):  # a request of the Open Inference Protocol
        text = f"{by} {body['inputs'][0]['data'][0]}"
        return {"outputs": [{"name": "told", "datatype": "BYTES", "shape": [1], "data": [text]}]}
    return f"{by} {body if isinstance(body, str) else bytes(body).decode()}"
"""
# What a run must have seen, by words of the daemon's log or of the ledger.
HAPPENED = (
    "a request came", "unloaded: idle", "unloaded by an operator", "daemon upgraded", "daemon killed", "workers killed",
    "routes",
)  # fmt: skip
RARE = (  # what a long run must have seen, too
    "unloaded: others needed the memory", "scaled from 1 to 2", "rollouts of a good version promoted by itself",
    "rollouts of the bad version aborted by itself", "routes with a shadow",
)  # fmt: skip
LONG = 300.0  # seconds


def pack(served: Served, model: str, version: str) -> str:
    """Put an archive into the store; give its file name."""
    (served.folder / "handler.py").write_text(HANDLER.replace("{scaled!r}", repr(SCALED)))
    settings = SETTINGS.format(most=3 if model in SCALED else 1, kept=60 if model in KEPT else 2)
    settings += "targetQueueMs: 5\n" if model in SCALED else ""
    (served.folder / "model-config.yaml").write_text(settings)
    packing = Packing(
        model_name=model, version=version, handler=str(served.folder / "handler.py"),
        config_file=served.folder / "model-config.yaml",
    )  # fmt: skip
    return write_archive(packing, served.store).rename(served.store / f"{model}-{version}.mar").name


def storm(served: Served, given: Namespace, ledger: Ledger) -> None:
    """Let everybody loose for a while, stop, and hold what clients saw against the routes."""
    outages, address, others, seed = Outages(), free_address(), all_protocol_clients(), str(given.seed)
    mark(served)
    served.environment["TSCTL_INFERENCE_ADDRESS"] = address
    options = ("--models-memory", BUDGET, *(option for each in others for option in each.options))
    served.start(*options)
    try:
        for model, versions in MODELS.items():
            for version in versions:
                served.tsctl("register", pack(served, model, version))
        steering = Steering(served, ledger, seed, given.upgrade_every, STEERED, outages, options)
        steering.add(steering.come_and_go, [model for model in MODELS if model not in STEERED], HELD)
        askers = Askers(address, MODELS, lambda: steering.hot, outages, ledger, seed, others)
        with steering, askers:
            time.sleep(given.seconds)
    finally:
        stop_alone(served)
    ledger.broken += [f"left behind: {each}" for each in left_behind(served)]
    log, wanted = logs(served), HAPPENED if given.seconds < LONG else HAPPENED + RARE
    for each in (*HAPPENED, *RARE):
        if each not in ledger.done:
            ledger.count(each, log.count(each))
    ledger.expect(*wanted)
    cut_off = 2 * CLIENTS * ledger.done["daemon killed"]  # what it runs, and kept connections that are used later
    replaced = CLIENTS * ledger.done["daemon upgraded"]  # each client's connection once
    ledger.broken += bounds(askers.kinds, ledger.done["workers killed"], cut_off, replaced)
    for model, epochs in steering.epochs.items():
        told, wrong = hold(model, epochs, askers.seen[model])
        ledger.done += told
        ledger.broken += wrong
    ledger.done += askers.by_protocol
    for kind, count in askers.kinds.items():
        ledger.count(kind, count)


def main(arguments: list[str]) -> int:
    return run("tests.lab.chaos.steered", arguments, storm, __doc__, seconds=600.0, upgrade_every=40.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
