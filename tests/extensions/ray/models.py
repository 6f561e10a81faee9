"""Models on a cluster, and questions about their workers."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

from tests.e2e.served import Answer, Served, eventually


def register(served: Served, handler: str, *options: str, name: str = "", version: str = "1.0", **ray: Any) -> None:
    """Register a handler of tests/e2e/archives with `engine: ray`; `ray` is the block of its model-config.yaml."""
    config = served.folder / f"{name or handler}-{version}.yaml"
    config.write_text(f"engine: ray\nray: {json.dumps(ray)}\n")
    served.register(handler, *options, name=name, version=version, config_file=config)


def workers_of(served: Served, model: str) -> list[dict[str, Any]]:
    """Return the ready workers of a model, as described."""
    return [each for each in served.describe(model)["workers"] if each["status"] == "READY" and "node" in each]


def nodes_of(served: Served, model: str) -> set[str]:
    """Return the beginnings of the ids of the nodes that a model's workers are on."""
    return {worker["node"].rpartition("/")[2] for worker in workers_of(served, model)}


def bridge_of(served: Served) -> int:
    """Return the pid of a daemon's bridge."""
    children = Path(f"/proc/{served.pid}/task/{served.pid}/children").read_text().split()
    return next(
        int(pid) for pid in children if b"tsctl.handlers.ray.bridge" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )


def kill_actor(worker: dict[str, Any]) -> None:
    """Kill the actor that holds a worker; on this machine it is the parent of the worker's process."""
    parent = Path(f"/proc/{worker['pid']}/stat").read_text().rpartition(")")[2].split()[1]
    os.kill(int(parent), signal.SIGKILL)


class Requests:
    """Requests to a model of `ran.py`, each in a thread, and what became of them.

    Attributes:
        answers: by their ids.
        file: where the handler writes down what it begins.
    """

    def __init__(self, served: Served, model: str = "ran") -> None:
        self.answers: dict[str, Answer] = {}
        self.file = served.folder / f"ran-{id(self)}"
        self.file.touch()
        self.model = model
        self._served = served
        self._threads: list[threading.Thread] = []

    def ask(self, name: str, seconds: float = 0.0) -> Answer:
        """Ask, and wait for the answer."""
        body = json.dumps({"id": name, "file": str(self.file), "seconds": seconds}).encode()
        answer = self._served.ask(f"/predictions/{self.model}", body, Content_Type="application/json")
        self.answers[name] = answer
        return answer

    def begin(self, *names: str, seconds: float) -> None:
        """Ask in the background; return when the first is running."""
        for name in names:
            self._threads.append(threading.Thread(target=self.ask, args=(name, seconds)))
            self._threads[-1].start()
        eventually(lambda: bool(set(names) & set(self.ran)), "a handler has begun")

    @property
    def ran(self) -> list[str]:
        """The ids that handlers have begun, as often as they did."""
        return self.file.read_text().split()

    def wait(self) -> dict[str, Answer]:
        """Wait for all answers."""
        for thread in self._threads:
            thread.join()
        return self.answers
