"""tsctl's daemon, as a wheel of this working tree installs it, compiled: every feature on, the access log too."""

import sys
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks.models import archive
from tests.benchmarks.peers.peer import Peer, Running, Setup, free_port, spawn
from tests.compiled import compiled


class Ours(Peer):
    name = "tsctl"

    def __init__(self, *options: str) -> None:
        """Args: further options of the daemon."""
        self._options = options
        self._python = Path(sys.executable)  # until it is installed: the working tree's own

    def install(self) -> str:
        self._python = compiled()
        return version("tsctl")

    def launch(self, setup: Setup) -> Running:
        store = setup.folder / "store"
        store.mkdir()
        mar = archive(setup.served, store, setup.batch_size, setup.delay)
        port = free_port()
        command: list[str | Path] = [
            self._python, "-P", "-m", "daemon",
            "--socket", setup.folder / "s",
            "--state-dir", setup.folder / "state",
            "--model-store", store,
            "--models", mar.name,
            "--inference-address", f"127.0.0.1:{port}",
            *self._options,
        ]  # fmt: skip
        process = spawn(command, setup.folder, {})
        output = setup.folder / "output.log"
        return Running(process, port, f"/predictions/{setup.served.name}", output, ("handlers",))
