"""tsctl's daemon, as a wheel of this working tree installs it, compiled: every feature on, the access log too."""

import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from tests.compiled import compiled
from tests.lab.benchmarks.models import FOLDER, archive, packages_environment
from tests.lab.benchmarks.peers.peer import Peer, Running, Setup, free_port, spawn

NETWORKS = ("resnet18", "resnet152")
COMPILED = FOLDER / "compiled"
COMPILING = 400.0  # seconds that a worker may take to load its model: compiling is slow, once
ROUGH = 0.05  # of a probability, relative: what bfloat16 may do to it


def daemon_command(
    python: Sequence[str | Path], setup: Setup, mars: Sequence[Path], port: int, *further: str
) -> list[str | Path]:
    """Return the command of a daemon with these models of one store, whose files are in the folder of the set-up."""
    return [
        *python, "-m", "tsctl.daemon",
        "--socket", setup.folder / "s",
        "--state-dir", setup.folder / "state",
        "--model-store", mars[0].parent,
        "--models", ",".join(mar.name for mar in mars),
        "--inference-address", f"127.0.0.1:{port}",
        *further,
    ]  # fmt: skip


class Ours(Peer):
    """One of our daemons.

    Args:
        optimize: what the model is to be optimised with, beside what its handler has by default. With such a
            name it is another peer, which serves networks only.
        python: the interpreter of an installation; by default the working tree's own, until it is installed.
    """

    def __init__(self, *optimize: str, python: Path = Path(sys.executable)) -> None:
        self.name = "+".join(("tsctl", *optimize))
        self._optimize = optimize
        self._python = python
        if "bf16" in optimize:
            self.tolerance = ROUGH
        if "compile" in optimize:
            self.patience = COMPILING

    def install(self) -> str:
        self._python = compiled()
        return version("tsctl")

    def suits(self, workload: str) -> bool:
        return not self._optimize or workload in (("lite0",) if "onnxruntime" in self._optimize else NETWORKS)

    def lacks(self) -> str:
        if "bf16" not in self._optimize:
            return ""
        import torch

        from tsctl.handlers.optimize.bfloat16 import refusal

        return refusal(torch.device("cpu"))

    def prepare(self, setup: Setup) -> None:
        store = setup.folder / "store"
        if store.exists():  # it is started again
            return
        store.mkdir()
        overrides = f"optimize: [{', '.join(self._optimize)}]\nstartupTimeout: {self.patience:.0f}\n"
        archive(setup.served, store, setup.batch_size, setup.delay, overrides if self._optimize else "")

    def launch(self, setup: Setup) -> Running:
        name, port = setup.served.name, free_port()
        command = daemon_command([self._python, "-P"], setup, [setup.folder / "store" / f"{name}.mar"], port)
        # What was compiled is kept for the next round: it would be in the state directory, which is new in each.
        environment = {"TORCHINDUCTOR_CACHE_DIR": str(COMPILED)} | packages_environment(setup.served)
        process = spawn(command, setup.folder, environment)
        return Running(process, port, f"/predictions/{name}", setup.folder / "output.log", ("handlers",))
