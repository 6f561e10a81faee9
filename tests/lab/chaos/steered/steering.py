"""Routes and rollouts of one model after the other, while workers are killed, and the daemon is killed and replaced."""

import http.client
import json
import os
import random
import signal
import threading
import time
from collections import defaultdict
from typing import Any
from urllib.parse import urlencode

from tests.e2e.served import Served, eventually, running
from tests.lab.chaos.steered.outages import Outages
from tests.lab.chaos.steered.verdict import BAD, Epoch
from tests.lab.harness.daemon import control
from tests.lab.harness.faults import Faults
from tests.lab.harness.ledger import Ledger

PATIENCE = 180.0  # seconds for the end of a rollout: its versions may wait for memory
KILL_EVERY = 3  # of the daemon's ends one is a kill, the others are upgrades


class Steering(Faults):
    """The faults, of which the changes are those of routes and rollouts.

    Args:
        steered: model → versions; those that have a bad one have it last.
        options: of `tsctl start`.

    Attributes:
        hot: the model that is being steered.
        epochs: by model.
    """

    kill_every = 1.0  # seconds: where workers live shorter, none is added for the load

    def __init__(
        self, served: Served, ledger: Ledger, seed: str, every: float, steered: dict[str, tuple[str, ...]],
        outages: Outages, options: tuple[str, ...],
    ) -> None:  # fmt: skip
        super().__init__(served, ledger, seed, every)
        self.hot = next(iter(steered))
        self.epochs: defaultdict[str, list[Epoch]] = defaultdict(list)
        self._steered = steered
        self._outages = outages
        self._options = options
        self._commands = threading.Lock()  # none is under way while the daemon is killed

    def _replace_daemon(self) -> None:
        """Upgrade the daemon, or kill it and start another, which must have the same routes."""
        if (self.ledger.done["daemon upgraded"] + self.ledger.done["daemon killed"]) % KILL_EVERY != 1:
            with self._outages.upgrade():
                super()._replace_daemon()
            return
        with self._commands, self._outages.kill():
            pid = self._served.pid
            os.kill(pid, signal.SIGKILL)
            eventually(lambda: not running(pid), "the daemon was killed")
            self._served.start(*self._options)
            self.ledger.count("daemon killed")

    def _change(self, chance: random.Random) -> None:
        for model in self._steered:
            self._route(model, chance, for_long=False)
        while not self.over.is_set():
            self.hot = model = chance.choice(list(self._steered))
            for work in chance.sample([self._route, self._route, self._roll_out_good, self._roll_out_bad], 3):
                if not self.over.is_set():
                    work(model, chance)

    def come_and_go(self, models: list[str], held: str, chance: random.Random) -> None:
        """Change what stays in memory; one model is pinned at a time: what is pinned is no room for others."""
        pinned, first = "", ["hold", "release"]
        while not self.over.wait(chance.uniform(0.2, 1.5)):
            model, version = chance.choice(models), "1.0"
            match first.pop(0) if first else chance.choice(["keep", "keep", "pin", "load", "hold", "release"]):
                case "keep":
                    self._tell("kept alive", model, f"?keep_alive={chance.choice(['0', '1s', '5s', 'forever'])}")
                case "pin":
                    if not pinned or self._tell("unpinned", pinned, "?pinned=false"):
                        pinned = model if self._tell("pinned", model, "?pinned=true") else ""
                case "load":
                    self._tell("loaded", model, f"/{version}/load?synchronous=false", "POST")
                case "hold":
                    self._tell("held", held, f"/{version}/unload", "POST")
                case "release":
                    self._tell("released", held, f"/{version}/load?synchronous=false", "POST")

    def _tell(self, done: str, model: str, what: str, method: str = "PATCH") -> bool:
        with self._commands:
            return self._command(done, model, method, f"/models/{model}{what}")

    def _good(self, model: str) -> list[str]:
        return [version for version in self._steered[model] if version != BAD]

    def _route(self, model: str, chance: random.Random, *, for_long: bool = True) -> None:
        """Set a route, and let it be for a while; whoever has a weight cannot be unregistered."""
        good = self._good(model)
        weights = {version: chance.choice((1, 10, 50, 90)) for version in chance.sample(good, chance.choice((1, 2, 2)))}
        sticky = chance.random() < 0.4
        asked = {"weights": " ".join(f"{version}={weight}" for version, weight in weights.items())}
        asked |= {"sticky": "header:x-user"} if sticky else {}
        if BAD in self._steered[model] and chance.random() < 0.4:
            asked |= {"shadow": BAD, "allow_effects": "true", "sample": "50%"}
            self.ledger.count("routes with a shadow")
        before = time.monotonic()
        self._must("PUT", f"/models/{model}/route?{urlencode(asked)}")
        self._change_epoch(model, before, frozenset(weights), tuple(weights.items()), sticky=sticky)
        self.ledger.count("routes")
        if for_long:
            self.over.wait(chance.uniform(2.0, 8.0))
            version = chance.choice(list(weights))
            status, _ = self._ask("DELETE", f"/models/{model}/{version}")
            if status != 409:
                self.ledger.broken.append(f"unregistering {model}/{version}, which had a weight, was {status}")

    def _roll_out_good(self, model: str, chance: random.Random) -> None:
        """Roll a good version out that does not answer alone already; a command may end that."""
        ended_by = chance.choice(("promote", "abort")) if chance.random() < 0.2 else ""
        state = self._roll_out(model, chance.choice(self._good(model)), "30,100", ended_by)
        self.ledger.count(f"rollouts of a good version {state}")
        if state == "aborted by itself":
            self.ledger.broken.append(f"a good version of {model} was taken back: {self._shown(model)}")

    def _roll_out_bad(self, model: str, chance: random.Random) -> None:
        if BAD not in self._steered[model]:
            return
        state = self._roll_out(model, BAD, "50,100", "")
        self.ledger.count(f"rollouts of the bad version {state}")
        if state == "promoted by itself":
            self.ledger.broken.append(f"the bad version of {model} was promoted: {self._shown(model)}")

    def _roll_out(self, model: str, new: str, steps: str, ended_by: str) -> str:
        """Roll a version out, wait for the end, and return how it ended."""
        olds = _weights(self._shown(model))
        if not set(olds) - {new}:
            return "that answers all already, not begun"
        before = time.monotonic()
        asked = {"version": new, "steps": steps, "every": "1s", "abort_if": "errors>20%"}
        self._must("POST", f"/models/{model}/rollout?{urlencode(asked)}")
        self._change_epoch(model, before, frozenset(olds) | {new})
        if ended_by:
            self.over.wait(1.0)
            self._ask("POST", f"/models/{model}/rollout/{ended_by}")  # 409 if it has just ended
        deadline = time.monotonic() + PATIENCE
        while (rollout := self._rollout(model))["state"] not in ("promoted", "aborted"):
            if self.over.is_set():  # nobody asks any more, so nothing will be shown
                self._ask("POST", f"/models/{model}/rollout/abort")
            elif time.monotonic() > deadline:
                self.ledger.broken.append(f"a rollout of {model} does not end: {rollout}")
                self._must("POST", f"/models/{model}/rollout/abort")
            time.sleep(0.1)
        shown = self._shown(model)
        left, sticky = _weights(shown), "sticky" in (shown["route"] or {})
        if rollout["state"] == "aborted" and left != olds:
            self.ledger.broken.append(f"the route of {model} was {olds}, and {left} after a rollout was taken back")
        self._change_epoch(model, time.monotonic(), frozenset(left), tuple(left.items()), sticky=sticky)
        return f"{rollout['state']} by {'a command' if 'command' in (rollout['reason'] or '') else 'itself'}"

    def _change_epoch(
        self, model: str, ended: float, versions: frozenset[str], weights: tuple[tuple[str, float], ...] = (),
        *, sticky: bool = False,
    ) -> None:  # fmt: skip
        """Note that the epoch of a model ended at a moment, and that another has begun by now."""
        epochs = self.epochs[model]
        if epochs:
            epochs[-1] = epochs[-1]._replace(ended=ended)
        epochs.append(Epoch(time.monotonic(), float("inf"), versions, weights, sticky))

    def _shown(self, model: str) -> Any:
        return self._ask("GET", f"/models/{model}/route")[1]

    def _rollout(self, model: str) -> Any:
        return self._ask("GET", f"/models/{model}/rollout")[1]["rollout"]

    def _must(self, method: str, target: str) -> None:
        status, document = self._ask(method, target)
        if status != 200:
            self.ledger.broken.append(f"{method} {target} was {status}: {document}")

    def _ask(self, method: str, target: str) -> tuple[int, Any]:
        """Send a command, again while the daemon is being replaced; return status and document."""
        while True:
            with self._commands:
                try:
                    answer = control(self._served, method, target)
                except (OSError, http.client.HTTPException) as error:
                    self.ledger.broken.append(f"{method} {target} was not answered: {error!r}")
                    return 0, {}
            if answer.status != 503 or b"being upgraded" not in answer.body:
                return answer.status, json.loads(answer.body)
            self.ledger.count("refused during an upgrade")
            time.sleep(0.1)


def _weights(shown: Any) -> dict[str, float]:
    """Return the weights of a route as the daemon shows them; without a route, the default version has one."""
    weights: dict[str, float] = (shown["route"] or {"weights": {shown["default"]: 1}})["weights"]
    return weights
