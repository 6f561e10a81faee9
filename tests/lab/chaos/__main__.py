"""Harm a real daemon in all ways at once while clients ask, and count what becomes of their requests.

    make chaos, or python -m tests.lab.chaos [--seconds 300] [--seed N] [--upgrade-every 20]

Every 200 ms a worker is killed; models are replaced, scaled and set; clients leave in the middle; hostile ones send
what is oversized, cut or malformed, on every protocol; the daemon is replaced. Nothing may be unanswered, answered
twice, wrong, or run more often than promised (verdict.py says what may be); the daemon's logs have no traceback; memory
and descriptors stay as they were after the warm-up; nothing is left in the end. A seed repeats what clients send and
what is done; when it happens is the machine's.

One model has two versions under routes that change: a request is answered by the version that it names, or by one that
a route had while it was under way. Another is loaded on demand, and unloaded whenever nobody has asked for a second.
Rows that run on their own, and sequences, are in rows.py.
"""

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.e2e.served import Served, eventually
from tests.lab.chaos import rows
from tests.lab.chaos.faults import MODELS, WORKERS, Faults, write_generation
from tests.lab.chaos.hostile import PREY, Hostile
from tests.lab.harness.clients import LARGE, Clients, Habit, large_words
from tests.lab.harness.daemon import logs, mark
from tests.lab.harness.footprint import Footprint, growth, left_behind, measure, measure_again
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.protocol_clients import ProtocolClients, all_protocol_clients
from tests.lab.harness.storm import run
from tests.lab.harness.verdict import Kind

# Workers of the second routed version, of the prey, and of rows; when it is calm the sleeping model has none.
FURTHER = 2 + rows.WORKERS * len(rows.CONFIGS)
WARM_UP = 0.2  # of the time


def _habits() -> list[Habit]:
    def hurried(model: str, slow: float) -> Habit:
        """Large bodies whose time is often over while a worker has them, or is about to begin them."""
        return Habit(
            model, words=partial(large_words, most=2 * LARGE), deadlines=(0, 30, 60, 100), slow=slow,
            pause=lambda chance: chance.choice((0.0, 0.02)),
        )  # fmt: skip

    counts = {"steady": 3, "once": 1, "pieces": 1, "narrow": 3, "crashing": 2}
    keeping = [Habit(model) for model, count in counts.items() for _ in range(count)]
    fresh = [Habit(model, keep=False) for model in ("steady", "once", "pieces", "narrow")]
    large = Habit("steady", words=large_words, pause=lambda chance: 0.02)  # else it would take a core for itself
    leaving = [
        Habit(model, leaves=1.0, pause=lambda chance: chance.uniform(0.0, 0.1))
        for model in ("steady", "once", "pieces")
    ]
    # Many of these end their workers, each with other bytes than those before.
    crashing = Habit("crashing", crash=0.5, pause=lambda chance: chance.uniform(0.0, 0.3))
    steered = [Habit("routed", versions=versions) for versions in ((0,), (0,), (0, 1, 2))]
    seldom = Habit("asleep", keep=False, pause=lambda chance: chance.choice((0.0, 0.1, 2.5)))
    return [
        *keeping, *fresh, large, *leaving, *[hurried("steady", 0.0)] * 2, *[hurried("timed", 0.2)] * 5, crashing,
        *steered, seldom,
    ]  # fmt: skip


def storm(served: Served, given: Namespace, ledger: Ledger) -> None:
    """Warm up, then let everybody loose for the rest of the time; look what is there when it is calm."""
    journal, others = mark(served), all_protocol_clients()
    calm, upgrade_every = list[Footprint](), min(given.upgrade_every, given.seconds / 5)
    try:
        served.start(*(option for each in others for option in each.options))
        served.register("echo", name=PREY)
        for model in MODELS:
            served.tsctl("register", write_generation(served, model, 1))
            ledger.generations[model] = 1
        served.tsctl("register", write_generation(served, "routed", 2))
        ledger.routes["routed"] = [frozenset({1})]
        rows.register(served)
        for share in (WARM_UP, 1 - WARM_UP):
            _let_loose(served, others, ledger, f"{given.seed} storm {len(calm)}", share * given.seconds, upgrade_every)
            workers = sum(WORKERS.values()) + FURTHER
            calm.append(measure_again(served, workers, calm[0]) if calm else measure(served, workers))
            print(f"calm: {', '.join(f'{count} {what}' for what, count in calm[-1].items())}", flush=True)
        ledger.broken += [*growth(*calm), *rows.left_over(served, ledger)]
    finally:
        served.stop()
        _judge_end(served, others, ledger, journal)


def _let_loose(
    served: Served, others: Sequence[ProtocolClients], ledger: Ledger, seed: str, seconds: float, upgrade_every: float
) -> None:
    address = served.url.removeprefix("http://")
    honest, hostile = Clients(address, ledger, seed, MODELS, _habits()), Hostile(address, ledger, seed, others)
    for each in others:
        each.ask(honest, MODELS)
    with honest, Faults(served, ledger, seed, upgrade_every), hostile, rows.Rows(served, ledger, seed):
        time.sleep(seconds)
    rows.become_calm(served)
    for model, workers in WORKERS.items():
        path = f"/models/{model}?min_worker={workers}&max_worker={workers}"
        assert served.command("PUT", path).status == 202
        eventually(
            lambda model=model, workers=workers: len(served.describe(model)["workers"]) == workers,  # type: ignore[misc]
            lambda model=model: f"{model} has its workers: {served.describe(model)}",  # type: ignore[misc]
        )


def _judge_end(served: Served, others: Sequence[ProtocolClients], ledger: Ledger, journal: Path) -> None:
    """Look what a daemon that is stopped has left, and hold the ledger against the journal."""
    ledger.broken += [f"left behind: {each}" for each in left_behind(served)]
    again = sum(kinds[Kind.AGAIN] for kinds in ledger.kinds.values())
    if again > (most := sum(each.most_cut_off(ledger) for each in others)):
        ledger.broken.append(f"{again} calls were cut off, and at most {most} can have been")
    ledger.broken += served.new_tracebacks()
    ledger.broken += [f"{model} has answered nothing" for model in MODELS if not ledger.kinds[model][Kind.RIGHT]]
    ledger.count("a request came", logs(served).count("a request came"))  # for the model that sleeps
    ledger.expect("routes", "a request came", "workers killed", *(f"{model} right" for model in rows.CONFIGS))
    ledger.check_runs(journal)


def main(arguments: list[str]) -> int:
    return run("tests.lab.chaos", arguments, storm, __doc__, seconds=300.0, upgrade_every=20.0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
