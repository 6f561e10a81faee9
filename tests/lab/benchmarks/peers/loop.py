"""The same work without a server: a loop in one process, one request's body after the other."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.lab.benchmarks.models import Served, app_environment
from tests.lab.benchmarks.peers.peer import DidNotStart, Measured
from tests.lab.benchmarks.results import Figures

APP = Path(__file__).parent / "apps" / "loop_app.py"


class Loop(Measured):
    """A loop.

    Args:
        package: what runs the network: `torch` or `onnxruntime`.
    """

    def __init__(self, package: str) -> None:
        self.name = f"{package}-loop"
        self._package = package

    def suits(self, workload: str) -> bool:
        return workload == "lite0"

    def install(self) -> str:
        return version(self._package)

    def figures(self, served: Served, seconds: float) -> Figures:
        """Measure it for so many seconds.

        Raises:
            DidNotStart: it failed.
        """
        settings = app_environment(served, 1, 0.0) | {"BENCH_RUNTIME": self._package}
        bodies = [request.body for request in served.requests]
        command: list[str | Path] = [sys.executable, APP, str(seconds), *bodies]
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True)
        if done.returncode:
            raise DidNotStart(f"{self.name} ended with exit code {done.returncode}\n{done.stderr}")
        figures: Figures
        figures, answers = json.loads(done.stdout.splitlines()[-1])
        checked = zip(served.requests, answers, strict=True)
        return figures | {"wrong": sum(not request.right(answer.encode()) for request, answer in checked)}
