"""The faults: workers are killed, the daemon is replaced, and commands are sent; a scenario adds its changes."""

import random
from typing import Any

from tests.e2e.served import Served
from tests.lab.harness.crowd import Crowd
from tests.lab.harness.daemon import kill_worker
from tests.lab.harness.ledger import Ledger

UPGRADE_PATIENCE = 600.0  # seconds
KILL_EVERY = 0.2  # seconds


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

    def _replace_model(self, model: str, url: str, further: str = "") -> None:
        """Replace a model by its next generation, which is in the store."""
        if self._command("replaced", model, "POST", f"/models?url={url}&replace=true{further}"):
            self.ledger.generations[model] += 1

    def _upgrade(self, chance: random.Random) -> None:
        """Replace the daemon; the pauses are without chance, so that a short run has some, too."""
        while not self.over.wait(self._every):
            self._replace_daemon()

    def _replace_daemon(self) -> None:
        options = ("--no-check-memory", "--timeout", f"{UPGRADE_PATIENCE:g}", "--json")
        upgraded = self._served.run("upgrade", *options, patience=UPGRADE_PATIENCE)
        if upgraded.returncode == 0:
            self.ledger.count("daemon upgraded")
        else:
            self.ledger.broken.append(f"tsctl upgrade: {upgraded.stderr}")
