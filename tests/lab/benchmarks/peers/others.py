"""Servers of the package index, and the same work without a server."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from tests.lab.benchmarks.models import MINILM, MODELS, Request, Served, app_environment
from tests.lab.benchmarks.peers.peer import DidNotStart, Packaged, Running, Setup, free_port, spawn
from tests.lab.benchmarks.results import Figures

APPS = Path(__file__).parent / "apps"


class WithApp(Packaged):
    """A server whose model is a program of peers/apps, as a user of it has one; Python workers.

    Attributes:
        app: the program; it gets the server's options, of which the last is the port.
        target: the path of predictions.
    """

    app: str
    target: str
    options: Sequence[str] = ()

    def launch(self, setup: Setup) -> Running:
        port = free_port()
        environment = app_environment(setup.served, setup.batch_size, setup.delay)
        command: list[str | Path] = [self.python(), APPS / self.app, *self.options, str(port)]
        return spawn(setup, command, environment, port, self.target, "spawn_main")


class Mosec(WithApp):
    """Rust in front."""

    name, app, target = "mosec", "mosec_app.py", "/inference"
    packages = ("mosec==0.9.8",)
    options = ("--address", "127.0.0.1", "--timeout", "120000", "--port")


class LitServe(WithApp):
    """Uvicorn and FastAPI in front."""

    name, app, target = "litserve", "litserve_app.py", "/predict"
    packages = ("litserve==0.2.19",)


class Infinity(Packaged):
    """infinity-emb, a server of embeddings: FastAPI in front, the model in a thread of the same process."""

    name = "infinity-emb"
    patience = 240.0  # before it serves, it times batches of the longest texts that it would take
    packages = (
        "infinity-emb[server,torch]==0.0.78",
        "transformers==4.48.3",    # the last that optimum's BetterTransformer takes, which it uses by default
        "optimum==1.24.0",
        "numpy<2",
        "scikit-learn<1.7",        # these two are built for that numpy
        "scipy<1.15",
        "fastapi<0.130",           # later ones want a content type
    )  # fmt: skip

    def adapt(self, served: Served) -> Served:
        return replace(served, requests=[_in_json(request) for request in served.requests])

    def launch(self, setup: Setup) -> Running:
        port = free_port()
        command: list[str | Path] = [
            self.python().parent / "infinity_emb", "v2", "--model-id", MODELS / "minilm" / MINILM,
            "--batch-size", str(setup.batch_size), "--device", "cpu", "--host", "127.0.0.1", "--port", str(port),
        ]  # fmt: skip
        quiet = {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"}
        return spawn(setup, command, quiet, port, "/embeddings", "infinity_emb")


def _in_json(request: Request) -> Request:
    body = request.body.with_suffix(".json")
    body.write_text(json.dumps({"input": [request.body.read_text()]}))
    # As the function in one process answers: a list of numbers.
    return Request(body, lambda answer: request.right(json.dumps(json.loads(answer)["data"][0]["embedding"]).encode()))


class Loop:
    """A loop in one process without a server, one request's body after the other.

    Args:
        package: what runs the network: `torch` or `onnxruntime`.
    """

    def __init__(self, package: str) -> None:
        self.name = f"{package}-loop"
        self._package = package

    def lacks(self) -> str:
        return ""

    def install(self) -> str:
        return version(self._package)

    def figures(self, served: Served, seconds: float) -> Figures:
        """Measure it for so many seconds.

        Raises:
            DidNotStart: it failed.
        """
        settings = app_environment(served, 1, 0.0) | {"BENCH_RUNTIME": self._package}
        bodies = [request.body for request in served.requests]
        command: list[str | Path] = [sys.executable, APPS / "loop_app.py", str(seconds), *bodies]
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
        if done.returncode:
            raise DidNotStart(f"{self.name} ended with exit code {done.returncode}\n{done.stderr}")
        figures: Figures
        figures, answers = json.loads(done.stdout.splitlines()[-1])
        checked = zip(served.requests, answers, strict=True)
        return figures | {"wrong": sum(not request.right(answer.encode()) for request, answer in checked)}
