"""tsctl's daemon, as a wheel of this working tree installs it, compiled: every feature on, the access log too."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

from tests.compiled import compiled
from tests.environments import Missing
from tests.lab.benchmarks.models import FOLDER, archive, packages_environment
from tests.lab.benchmarks.peers.peer import Peer, Running, Setup, free_port, spawn

COMPILED = FOLDER / "compiled"
COMPILING = 400.0  # seconds that a worker may take to load its model: compiling is slow, once
ROUGH = 0.05  # of a probability, relative: what bfloat16 may do to it


class Ours(Peer):
    """One of our daemons.

    Args:
        optimize: what the model is to be optimised with, beside what its handler has by default.
        python: the interpreter of an installation; by default the working tree's own, until it is installed.
        further: lines of model-config.yaml.
    """

    def __init__(self, *optimize: str, python: Path = Path(sys.executable), further: str = "") -> None:
        self.name = "+".join(("tsctl", *optimize))
        self._optimize = optimize
        self._python = python
        self._further = further
        if "bf16" in optimize:
            self.tolerance = ROUGH
        if "compile" in optimize:
            self.patience = COMPILING

    def install(self) -> str:
        if path := os.environ.get("PYTHONPATH"):
            raise Missing(f"PYTHONPATH is {path}, whose sources would be measured in place of the wheel: unset it")
        self._python = compiled()
        return version("tsctl")

    def lacks(self) -> str:
        if "bf16" not in self._optimize:
            return ""
        import torch

        from tsctl.handlers.optimize.bfloat16 import refusal

        return refusal(torch.device("cpu"))

    def launch(self, setup: Setup) -> Running:
        name, port, store = setup.served.name, free_port(), setup.folder / "store"
        store.mkdir()
        optimized = f"optimize: [{', '.join(self._optimize)}]\nstartupTimeout: {self.patience:.0f}\n"
        overrides = self._further + optimized * bool(self._optimize)
        archive(setup.served, store, setup.batch_size, setup.delay, overrides)
        command: list[str | Path] = [
            self._python, "-P", "-m", "tsctl.daemon",
            "--socket", setup.folder / "s",
            "--state-dir", setup.folder / "state",
            "--model-store", store,
            "--models", f"{name}.mar",
            "--inference-address", f"127.0.0.1:{port}",
        ]  # fmt: skip
        # What was compiled is kept for the next round: it would be in the state directory, which is new in each.
        environment = {"TORCHINDUCTOR_CACHE_DIR": str(COMPILED)} | packages_environment(setup.served)
        return spawn(setup, command, environment, port, f"/predictions/{name}", "handlers")
