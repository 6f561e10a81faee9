"""The faults: workers are killed, models changed and replaced, and the daemon is replaced itself."""

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daemon.marfile import Packing, write_archive
from tests.e2e.served import ARCHIVES, Answer, Served
from tests.lab.chaos.callers import MODELS
from tests.lab.chaos.crowd import Crowd
from tests.lab.chaos.ledger import Ledger
from tests.lab.chaos.peer import PATIENCE
from tests.lab.chaos.upgrades import command_of

WORKERS = {"steady": 3, "once": 2, "pieces": 2, "narrow": 1, "timed": 1, "crashing": 1}
CONFIG = "minWorkers: {workers}\nmaxWorkers: {workers}\nbatchSize: {batch}\nmaxBatchDelay: 2\nretry: {retry}\n"
NARROW_QUEUE = 2
UPGRADE_PATIENCE = 600.0  # seconds


def write_generation(served: Served, model: str, generation: int) -> str:
    """Put an archive into the store that tells this number; give its file name."""
    folder = served.folder / "packing"
    folder.mkdir(exist_ok=True)
    (folder / "generation.txt").write_text(str(generation))
    rules = MODELS[model]
    batch = 1 if rules.pieces or rules.narrow or model == "crashing" else 2 if rules.timeout else 4
    settings = CONFIG.format(workers=WORKERS[model], batch=batch, retry=str(rules.retry).lower())
    if rules.narrow:
        settings += f"jobQueueSize: {NARROW_QUEUE}\n"
    if rules.timeout:
        settings += f"clientTimeoutInMills: {rules.timeout}\n"
    (folder / "model-config.yaml").write_text(settings)
    packing = Packing(
        model_name=model,
        version="1.0",
        handler=str(ARCHIVES / "accounts.py"),
        extra_files=str(folder / "generation.txt"),
        config_file=folder / "model-config.yaml",
    )
    return write_archive(packing, served.store, force=True).name


class Faults(Crowd):
    """Threads that do harm until they are told to stop.

    Args:
        every: seconds between two upgrades.

    Attributes:
        done: what was done, and how often.
    """

    kill_every = 0.2  # seconds

    def __init__(self, served: Served, ledger: Ledger, seed: str, every: float) -> None:
        self.done: Counter[str] = Counter()
        self._served = served
        self._ledger = ledger
        self._seed = seed
        self._every = every
        super().__init__()
        works = (self._kill, self._change, self._upgrade)
        self._threads = [threading.Thread(target=self._guarded, args=(work,)) for work in works]

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a thread's bug would go unseen
            self._ledger.broken.append(f"{work.__name__.strip('_')}: {error!r}")

    def _kill(self) -> None:
        """Kill a worker that has answered: one that has not would count as one that cannot."""
        chance = random.Random(f"{self._seed} kills")
        mark = marked_environment(self._served)
        while not self._over.wait(self.kill_every):
            for pid in chance.sample(there := self._ledger.answering(), len(there)):
                if self._kill_worker(pid, mark):
                    self.done["workers killed"] += 1
                    break
                self._ledger.forget(pid)

    def _kill_worker(self, pid: int, mark: bytes) -> bool:
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(pid)
            try:
                if mark not in Path(f"/proc/{pid}/environ").read_bytes() or "handlers.worker" not in command_of(pid):
                    return False
                self._ledger.killed.add(pid)  # before it is: the answer may be here at once
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return True
            finally:
                os.close(handle)
        return False

    def _change(self) -> None:
        """Replace, scale and set; look each time whether what was acknowledged is so."""
        chance = random.Random(f"{self._seed} changes")
        while not self._over.wait(chance.uniform(0.0, 0.6)):
            model = chance.choice(["steady", "steady", "steady", "once", "pieces"])
            match chance.choice(["replace", "scale", "set", "set"]):
                case "replace":
                    self.replace(model)
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

    def replace(self, model: str) -> None:
        """Replace a model by the next generation of it."""
        generation = self._ledger.generations[model] + 1
        url = write_generation(self._served, model, generation)
        if self._command("replaced", model, "POST", f"/models?url={url}&replace=true&initial_workers={WORKERS[model]}"):
            self._ledger.generations[model] = generation

    def _command(self, done: str, model: str, method: str, path: str, **expected: Any) -> bool:
        """Send a command; tell whether it was acknowledged."""
        answer = ask_control(self._served, method, path)
        if answer.status == 503 and b"being upgraded" in answer.body and "retry-after" in answer.headers:
            self.done["refused during an upgrade"] += 1
            return False
        if answer.status not in (200, 202, 206):  # 206: done, and a worker was killed before it could be said
            self._ledger.broken.append(f"{method} {path} was answered {answer.status}: {answer.body[:500]!r}")
            return False
        self.done[done] += 1
        if expected:
            found = described(self._served, model)
            if any(found[name] != value for name, value in expected.items()):
                self._ledger.broken.append(f"{method} {path} was acknowledged, and not done: {found}")
        return True

    def _upgrade(self) -> None:
        """Replace the daemon; the pauses are without chance, so that a short run has some, too."""
        while not self._over.wait(self._every):
            self._replace_daemon()

    def _replace_daemon(self) -> None:
        options = ("--no-check-memory", "--timeout", f"{UPGRADE_PATIENCE:g}", "--json")
        upgraded = self._served.run("upgrade", *options, patience=UPGRADE_PATIENCE)
        if upgraded.returncode == 0:
            self.done["daemon upgraded"] += 1
        else:
            self._ledger.broken.append(f"tsctl upgrade: {upgraded.stderr}")


def ask_control(served: Served, method: str, path: str) -> Answer:
    """Send one request to the control socket, which is there all the time."""
    connection = http.client.HTTPConnection("tsctl")
    with socket.socket(socket.AF_UNIX) as connection.sock, contextlib.closing(connection):
        connection.sock.settimeout(PATIENCE)
        connection.sock.connect(served.environment["TSCTL_SOCKET"])
        connection.request(method, path)
        with connection.getresponse() as response:
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())


def described(served: Served, model: str) -> Any:
    """Read the describe document of a model."""
    return json.loads(ask_control(served, "GET", f"/models/{model}").body)[0]


def marked_environment(served: Served) -> bytes:
    """Return the environment that marks the processes of this daemon."""
    return f"UPGRADES_MARK={served.folder}\0".encode()
