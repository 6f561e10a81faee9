"""The models of the storm, and the faults: workers are killed, models are changed, and the daemon is replaced."""

import random
from typing import Any
from urllib.parse import urlencode

from tests.e2e.served import Served
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.daemon import kill_worker, pack_accounts
from tests.lab.harness.ledger import Ledger
from tests.lab.harness.verdict import Rules

MODELS = {
    "steady": Rules(),
    "once": Rules(retry=False),
    "narrow": Rules(narrow=True),
    "pieces": Rules(pieces=True),
    "timed": Rules(timeout=100),
    "crashing": Rules(retry=False),
    "routed": Rules(),
    "asleep": Rules(),
}
WORKERS = {"steady": 3, "once": 2, "pieces": 2, "narrow": 1, "timed": 1, "crashing": 1, "routed": 1}
ROUTES = ("1.0=1", "2.0=1", "1.0=50 2.0=50", "1.0=1 2.0=9")
CONFIG = "minWorkers: {workers}\nmaxWorkers: {workers}\nbatchSize: {batch}\nmaxBatchDelay: 2\nretry: {retry}\n"
NARROW_QUEUE = 2
UPGRADE_PATIENCE = 600.0  # seconds
KILL_EVERY = 0.2  # seconds


def write_generation(served: Served, model: str, generation: int) -> str:
    """Put an archive into the store that tells this number; give its file name.

    Each of a model with routes is another version, each of the others is the same.
    """
    rules = MODELS[model]
    batch = 1 if rules.pieces or rules.narrow or model == "crashing" else 2 if rules.timeout else 4
    settings = CONFIG.format(workers=WORKERS.get(model, 1), batch=batch, retry=str(rules.retry).lower())
    settings += f"jobQueueSize: {NARROW_QUEUE}\n" if rules.narrow else ""
    settings += f"clientTimeoutInMills: {rules.timeout}\n" if rules.timeout else ""
    settings += "loading: on_demand\nkeepAlive: 1s\n" if model == "asleep" else ""
    return pack_accounts(served, model, generation, settings, f"{generation}.0" if model == "routed" else "1.0")


class Faults(Crowd):
    """Threads that do harm until they are told to stop.

    Args:
        every: seconds between two upgrades.
    """

    def __init__(self, served: Served, ledger: Ledger, seed: str, every: float) -> None:
        super().__init__(ledger, seed)
        self._served = served
        self._every = every
        for work in (self._kill, self._change, self._upgrade):
            self.add(work)

    def _kill(self, chance: random.Random) -> None:
        """Kill a worker that has answered: one that has not would count as one that cannot."""
        while not self.over.wait(KILL_EVERY):
            for pid in chance.sample(there := self.ledger.answering(), len(there)):
                if kill_worker(self._served, pid, self.ledger.killed):
                    self.ledger.count("workers killed")
                    break
                self.ledger.forget(pid)

    def _change(self, chance: random.Random) -> None:
        """Change models; look each time whether what was acknowledged is so."""
        while not self.over.wait(chance.uniform(0.0, 0.6)):
            model = chance.choice(["steady", "steady", "steady", "once", "pieces", "routed"])
            if model == "routed":
                self._route(chance.choice(ROUTES))
                continue
            match chance.choice(["replace", "scale", "set", "set"]):
                case "replace":
                    url = write_generation(self._served, model, self.ledger.generations[model] + 1)
                    path = f"/models?url={url}&replace=true&initial_workers={WORKERS[model]}"
                    if self._command("replaced", model, "POST", path):
                        self.ledger.generations[model] += 1
                case "scale":
                    workers = chance.randrange(1, WORKERS[model] + 2)
                    path = f"/models/{model}?min_worker={workers}&max_worker={workers}"
                    self._command("scaled", model, "PUT", path, minWorkers=workers)
                case "set":
                    size = 1 if MODELS[model].pieces else chance.randrange(1, 9)
                    delay = chance.randrange(6)
                    policy = chance.choice(["auto", "fixed", "greedy"])
                    path = f"/models/{model}?batch_size={size}&max_batch_delay={delay}&batching={policy}"
                    self._command("set", model, "PATCH", path, batchSize=size, maxBatchDelay=delay)

    def _route(self, weights: str) -> None:
        """Set a route; while it is being set, and where that is not acknowledged, those of both may answer."""
        routes = self.ledger.routes["routed"]
        before, after = routes[-1], frozenset(int(each[0]) for each in weights.split())
        routes.append(before | after)
        done = self._command("routes", "routed", "PUT", f"/models/routed/route?{urlencode({'weights': weights})}")
        routes.append(after if done else before)

    def _command(self, done: str, model: str, method: str, path: str, **expected: Any) -> bool:
        """Send a command; tell whether it was acknowledged."""
        answer = self._served.command(method, path)
        if answer.status == 503 and b"being upgraded" in answer.body and "retry-after" in answer.headers:
            self.ledger.count("refused during an upgrade")
            return False
        if answer.status not in (200, 202, 206):  # 206: done, and a worker was killed before it could be said
            self.ledger.broken.append(f"{method} {path} was answered {answer.status}: {answer.body[:500]!r}")
            return False
        self.ledger.count(done)
        if expected:
            found = self._served.describe(model)
            if any(found[name] != value for name, value in expected.items()):
                self.ledger.broken.append(f"{method} {path} was acknowledged, and not done: {found}")
        return True

    def _upgrade(self, chance: random.Random) -> None:
        """Replace the daemon; the pauses are without chance, so that a short run has some, too."""
        options = ("--no-check-memory", "--timeout", f"{UPGRADE_PATIENCE:g}", "--json")
        while not self.over.wait(self._every):
            upgraded = self._served.run("upgrade", *options, patience=UPGRADE_PATIENCE)
            if upgraded.returncode == 0:
                self.ledger.count("daemon upgraded")
            else:
                self.ledger.broken.append(f"tsctl upgrade: {upgraded.stderr}")
