"""A client: random commands over the control socket, one after the other, until the daemon is gone."""

import http.client
import json
import random
import time
from typing import Any
from urllib.parse import urlencode

from tests.e2e.served import Served
from tests.lab.history.checker import Operation, Outcome
from tests.lab.history.commands import BROKEN, Change, Command, Register, Retry, SetDefault, Unregister, Version

NAMES = ("m", "n")
VERSIONS = ("1.0", "2.0")
ARCHIVES = ("a", "b", BROKEN)


def archive_name(archive: str, version: str) -> str:
    return f"{archive}-{version}.mar"


class Client:
    """Sends commands of its own random sequence, and notes what became of each."""

    def __init__(self, served: Served, number: int, rng: random.Random) -> None:
        self.history: list[Operation] = []
        self._served = served
        self._number = number
        self._rng = rng

    def run(self) -> None:
        """Send commands until one is not answered."""
        while True:
            command = random_command(self._rng)
            began = time.monotonic()
            try:
                status, document = self._send(command)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.history.append(Operation(self._number, command, Outcome.UNKNOWN, began, note=repr(error)))
                return
            said = str(document.get("status") or document.get("message")).partition("\n")[0]
            outcome, open_end = judged(command, status, said)
            end = {} if open_end else {"ended": time.monotonic()}
            self.history.append(Operation(self._number, command, outcome, began, **end, note=f"{status} {said}"))

    def _send(self, command: Command) -> tuple[int, Any]:
        method, target = request_of(command)
        answer = self._served.command(method, target)
        return answer.status, json.loads(answer.body)


def judged(command: Command, status: int, said: str) -> tuple[Outcome, bool]:
    """Return the outcome of a command by its answer, and whether the command may still take effect later."""
    if status == 202 and isinstance(command, Register) and command.replace:
        return Outcome.UNKNOWN, True  # it has begun, no more
    if status < 300:
        return Outcome.DONE, False
    refused = status < 500 or (status == 503 and "is being upgraded" in said)
    return (Outcome.REFUSED if refused else Outcome.UNKNOWN), False


def request_of(command: Command) -> tuple[str, str]:
    """Make the method and the target of a command's request."""
    path = f"/models/{command.name}/{command.version}"
    match command:
        case Register(name, version, what, replace, synchronous):
            query = {
                "url": archive_name(what.archive, version),
                "model_name": name,
                "batch_size": what.batch_size,
                "initial_workers": what.workers,
                "synchronous": str(synchronous).lower(),
                "replace": str(replace).lower(),
            }
            return "POST", f"/models?{urlencode(query)}"
        case Change(field="workers", value=workers):
            return "PUT", f"{path}?min_worker={workers}"
        case Change(value=batch_size):
            return "PATCH", f"{path}?batch_size={batch_size}"
        case Unregister():
            return "DELETE", path
        case SetDefault():
            return "PUT", f"{path}/set-default"
        case Retry():
            return "POST", f"{path}/retry"


def random_command(rng: random.Random) -> Command:
    name, version = rng.choice(NAMES), rng.choice(VERSIONS)
    what = Version(rng.choice("ab"), rng.randrange(1, 9), rng.choice([0, 0, 0, 1]))
    match rng.choice(["register"] * 4 + ["replace"] * 3 + ["scale", "set", "set", "unregister", "default", "odd"]):
        case "register":
            return Register(name, version, what, synchronous=rng.random() < 0.7)
        case "replace":
            return Register(name, version, what, replace=True, synchronous=rng.random() < 0.9)
        case "scale":
            return Change(name, version, "workers", rng.choice([0, 1]))
        case "set":
            return Change(name, version, "batch_size", rng.randrange(1, 9))
        case "unregister":
            return Unregister(name, version)
        case "default":
            return SetDefault(name, version)
    if rng.random() < 0.5:
        return Retry(name, version)
    # Without waiting: a registration that is waited for and fails is there for a while, and gone again.
    return Register(name, version, what._replace(archive=BROKEN, workers=1), synchronous=False)
